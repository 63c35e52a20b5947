// Package inventory is what there is to sell in a round: each flavor on the market
// with what of it is free, what contracts hold of it, and on which cards.
//
//	offer.go      an Offer: what it is, as reports and reviewed files state
//	inventory.go  all of them: read, brought up to date, measured
//	held.go       what a contract takes of an offer
//	place.go      taking and giving back, by Place
//	cards.go      the cards of an offer that sells parts of them
//	nodes.go      the nodes of an offer that tells them
//	places.go     in which places, such as racks, they are
//	growth.go     what an autoscaler could add
//	risk.go       what overcommit.maxRisk forbids
//
// # Invariants
//
//   - free = capacity − used − held, by the ledger's own arithmetic
//     (ledger.Available), where capacity is what is sold of it (× overcommit, no more
//     than maxRisk allows) and what an autoscaler could add to it. It holds when an
//     offer is measured, and Take keeps it: what Free loses Held gains. Lend alone
//     moves Free without Held: it asks what would be if contracts were not there.
//   - The flavors of a pool share cores, memory, pods and storage: what is taken of one
//     is free at none of them.
//   - Take and its inverse (Delta.Inverse), Lend and Unlend, bring back what was, in any
//     number and nested in any way, on cards and nodes too. The caller keeps the journal.
//   - Offers are ordered by provider and name, whatever the order in which they were handed in,
//     and keep their Index for as long as the Inventory lives.
//   - Whatever is derived from an offer can ask what was touched since (Touched) and what
//     reports something else (Altered), and look again at those alone.
//
// A place is an offer. From when to when is to be a field of Place: callers hand places in
// whole.
//
// It knows flavors, clusters and what contracts hold; nothing of intents, prices or
// what is asked for. What everybody is refused an offer for is given to it
// (Facts.Blocked).
//
// # Who calls it
//
// internal/planner's rounds, and the packages between. An Inventory serves one
// round after the other: Begin, then Describe and Recount what changed, then Measure.
//
// # Concurrency
//
// None: an Inventory belongs to the goroutine of its round. Fields and vectors of an
// Offer are read by all and written here alone.
package inventory
