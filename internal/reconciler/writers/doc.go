// Package writers says by whom, and by which version of the program, the newest
// commits of a ledger were written: whether it is this daemon's turn to decide (Turns),
// which numbers of rendering and rules the ledger is of (Numbers), and with which commit
// a contract began to end (Ends).
//
// Invariants:
//   - Of daemons that share no store one decides. One that finds the newest commit of
//     another one on the ledger, younger than Young, stands by; so does one that finds a
//     commit of a version that did not name its daemon.
//   - A daemon never waits for itself: its name is the same after a restart.
//   - What an operator's command wrote makes no daemon wait, and what nobody with the
//     fleet's key (in an unsigned fleet: its address) wrote does not either.
//   - No wait is longer than Young from when the commit was seen, whatever time it bears.
//
// The reconciler's rounds call it, from one goroutine.
package writers
