//go:build race

package child

// dataLimited: the race detector reserves more than any bound.
const dataLimited = false
