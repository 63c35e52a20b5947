// Package replay makes a decision of the past again: what a round knew beside
// inputs, ledger and market is written down with the commit that carries its
// decisions (Keeper, Record), and Replay plans once more from it, with the
// planner that the daemon uses.
//
//	inputs      the commit in the trailer Inputs, verified as the daemon did
//	ledger      the commit that Record.Base names
//	market      the tree in the trailer Market
//	all else    the Record in the trailer Round
//	            └─► planner.Decide ─► files ─► the same as the commit's?
//
// # Invariants
//
//   - What the record leaves out follows from inputs, ledger and market alone.
//   - A record costs what has changed since the one before and what is unusual,
//     not what stands: of contracts that are in order it says nothing.
//   - Records are read strictly: an unknown field or version is an error.
//
// # Who calls it
//
// The reconciler keeps records, `fleetbroker audit replay` and the simulation
// replay them.
//
// # Concurrency
//
// A Keeper belongs to one goroutine. Everything else is pure.
package replay
