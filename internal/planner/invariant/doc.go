// Package invariant asks a finished plan, by other means than those that made it, whether
// what it places, enlarges or books breaks an invariant: a flavor, a card or a node oversold, now
// or at any instant at which a booking begins, a quota exceeded, a name taken.
//
//	invariant.go   what of a plan is asked, and what a quota leaves
//	aftermath.go   what the ledger holds after a plan, without making it
//	ahead.go       the same on the time axis
//	nodes.go       node by node
//
// It reads ledger, plan and flavors, with the ledger's own arithmetic. Of inventory and
// account it takes what an offer is and how a size or a quota is written; what a round has
// booked there it does not read.
//
// # Who calls it
//
// internal/planner at the end of each round: what is found is taken out of the plan.
//
// # Concurrency
//
// Pure functions of their arguments.
package invariant
