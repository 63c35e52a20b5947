// Package story is a small fleet with a history that a real daemon has made, for
// tests of those who read it: rooms joined as in the daemon's main, the
// repository in memory, clusters in which everything works at once, and time
// that stands still until it is moved.
//
// Callers are tests of internal/audit and internal/cli. A Story is for one
// goroutine.
package story
