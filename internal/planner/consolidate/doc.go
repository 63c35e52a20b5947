// Package consolidate moves contracts that work to offers that have become better, if
// what it saves is worth the disruption:
//
//	saving ÷ cost of the pool
//	────────────────────────────────────────  ≥  threshold
//	disruption ÷ disruption of the pool
//
// the rule of Karpenter's "Balanced" consolidation (RFC in
// kubernetes-sigs/karpenter, designs/balanced-consolidation.md; its default k = 2 is our
// threshold of 0.5). The pool is the tenant's charged contracts: whoever is
// disturbed is who saves, and no team's contracts decide about another's. Cost
// and saving are averages over the coming week, price windows and transfer
// included; disruption is 1 and a hundredth of the priority, so 1 at the least.
// With equal contracts the rule reads: save at least half of what one costs.
//
// An offer is better when it is cheaper and the intent's own weights do not
// score it lower than where the contract is. It must be better, by however
// little, for the whole of `hold`; the threshold must be reached when that
// begins and when the move is made. The ledger remembers what is proposed since
// when (IntentStatus.Proposals), so that a restart changes nothing.
//
// It never flaps: prices as they are, each move lowers the week's cost of what
// it moves, so no place is left and come back to. Spot prices move by
// themselves; from spot to spot nothing is moved.
//
// It also makes room: where moves are made, one contract moves for an intent that finds no
// place, to an offer at which its own intent may be by its rules and budgets, if both together
// then cost at most as many times as much as where they are as the fleet pays for the sake of
// others (Fleet.scarcity); for another tenant's only where it costs no more. Without that, more
// is refused with consolidation than without: what moves to the cheapest place sits where alone
// another may (test/quality, TestOnlineArrivals_Seeds). Only a contract that has been where it
// is for `hold` moves so, and one in `hold` for one intent; for other tenants each time after
// twice as long. To come back it has to be cheaper there by the rule above. The intent has what
// is left: contend keeps it, as it does where others give way, for as long as `hold`.
//
//	consolidate.go   which jobs are looked at, and what is proposed and moved
//	consolidable.go  what may be moved at all
//	better.go        which offer is better for a contract, and whether that is worth it
//	together.go      replicas that share a domain, which move as a whole
//	makeroom.go      a move for an intent that finds no place
//	mover.go         which contract may make it, and where that goes
//	room.go          a move leaves room for each kind of request that is asked for
//
// # Invariants
//
//   - A contract is moved only where nothing else happens to its intent: it is served as it
//     asks by contracts that all work.
//   - What is tried is rolled back; what is left of it are moves made by package place and
//     Job.Proposals.
//   - A move for another is made when that one then fits whole, and never for one of lower
//     priority.
//   - Looking is charged like any other look at the market (settle.Settler.Bill): what does
//     not fit into the round keeps what was proposed for it. Looking for room is counted
//     against limits.work of the tenant that waits (package looks), and no more is looked at
//     for all tenants together than one has.
//
// # Who calls it
//
// The sixth step of package planner, with the round's settler. One goroutine uses that.
package consolidate
