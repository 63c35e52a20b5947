// Package leaselock keeps who takes part in an election from giving up a Lease that
// another one holds.
//
// The elector of client-go gives its Lease up when its term ends: it reads the Lease, and
// writes it without a holder if it was the holder when it looked last. One that could not
// renew, because it was cut off or stood still, thereby empties the Lease of whoever has taken
// over meanwhile (v0.37, LeaderElector.tryRelease), and may then take it itself.
//
// # Invariants
//
//   - A Lease is written without a holder only over the own name, as it was read last; what
//     came between is a conflict of the API server.
//
// # Who calls it
//
// The election of who decides (package daemon), and those for consumers (delivery).
//
// # Concurrency
//
// An elector uses its lock from one goroutine at a time.
package leaselock
