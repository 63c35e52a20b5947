// Package progress shows how far a long command is.
//
// Invariants: nothing is written before the first tenth of a second on a terminal, or ten
// seconds elsewhere; what is written goes to one stream, never to a command's own output.
//
// Commands of package cli call it (simulate, audit). A Line is of one goroutine.
package progress
