// Package daemon is what the daemon's process has in addition to the rooms that it
// joins: where its replicas keep the market that they share (StoreFlags.Open), which of
// them decides (Election), and how the others hand on what they are asked for
// (Broker).
//
//	agent ──request──► any replica ──mTLS──► the one that decides ──commit──► ledger
//	                        ▲                                                   │
//	                        └───────── answered once the commit stands ◄────────┘
//
// Invariants:
//   - Of the replicas that share a store one decides, by a Lease in the store's
//     cluster. Correctness does not hang on it: the push to the ledger is
//     compare-and-swap, whoever believes to lead.
//   - Who cannot read git, has a wrong clock or is cut off from the store gives the
//     Lease up, and does not stand again before that is over.
//   - Cut off from the store, the last one that led goes on until another one leads, which
//     it learns by the Lease or by the ledger: its market is deaf, so that nothing is
//     placed, and terms, budgets and releases go on. A note in its state directory (Past)
//     tells it after a restart that it was the last one.
//   - Who holds the Lease and has not renewed it for as long as it counts does not decide:
//     it stood still, or is cut off, and another one may have it. Only who holds it speaks
//     to people.
//   - A replica with far more agents' connections than the others gives some away, none in
//     the middle of a request (Balance).
//   - A part that computes when the daemon is to stop is left after a moment (Stoppable):
//     nothing of it is acted on before it is through.
//   - A request is named once, by the replica that took it; whoever is asked for it
//     again by that name decides it once, by the ledger. Nothing is answered before
//     its commit stands.
//
// The cli makes and runs them. All is safe for concurrent use.
package daemon
