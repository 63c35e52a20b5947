// Package anchor finds by signatures what stands on a ledger of which nothing else
// is known, and what that says of the inputs.
//
// Invariants:
//   - Dates and the order of parents are not looked at: ancestry and the numbers
//     that the daemon signed decide.
//   - A commit without a number counts only where no numbered one is above it.
//   - The work is that of the commits above the newest numbered ones.
//
// gitrepo calls it, under its lock. Functions keep nothing and may be called by any
// goroutine.
package anchor
