// Package simulate runs a table of demand through the planner in virtual time
// and measures what comes of it: what was placed, refused, how long it waited,
// what it cost, how full the GPUs were, how much of them lay in pieces nobody
// asked for, and how evenly tenants were served.
//
// The planner is the real one: each instant at which something arrives or ends
// becomes a World of intents, offers and a ledger, planner.Decide decides, and
// the plan's changes go into the ledger (planned.go). Beside it stand known
// policies that place one intent after the other (baseline.go, fgd.go). Every
// placement of any of them is booked by the simulation itself (site.go), which
// fails when a node or a single card would be given away twice.
//
// # Model
//
//   - A row of demand arrives at its creation time, waits until it is placed,
//     and then stays for as long as it did in the trace. Nothing else takes
//     time: a plan is in force at the instant it is made.
//   - A flavor of whole machines is sold by the machine, a node of a trace in any
//     parts. Where the demand has shares of cards, cards of nodes are cut into
//     thousandths and each share lies on one card: the one that the contract
//     names, which these books must have free.
//   - Where the fleet applies consolidation, clusters do at once what the ledger
//     says, and what works moves to better offers. A move takes no time and costs
//     nothing by itself; who it makes room for is placed at the same instant.
//   - Money accrues per second from the placement to the end, or to the end of
//     the simulation.
//
// # Invariants
//
// Equal tables, options and seeds give equal results, to the byte: there is no
// clock and no randomness but that of the seed. Amounts are integers and money
// is decimal or integer micro-units; floats appear in scores and ratios alone.
//
// # Who calls it
//
// The `simulate` command, and tests of the planner's quality. It reads tables
// through internal/market and does no I/O of its own.
//
// # Concurrency
//
// A Run uses one goroutine and what it is given is not modified; several may
// run at once.
package simulate
