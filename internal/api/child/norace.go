//go:build !race

package child

// dataLimited: the child bounds its memory.
const dataLimited = true
