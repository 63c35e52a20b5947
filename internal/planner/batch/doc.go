// Package batch looks for the cheapest places of what was asked for at once. It is
// plain numbers: seats of so many kinds, rows with so much room, and what a place
// costs; it knows nothing of intents, offers or contracts. The planner makes a
// Problem of a batch, and books what Solve finds.
//
// The search is ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt, Dueck:
// Record breaking optimization results using the ruin and recreate principle,
// 2000): a few rows are emptied, those who sat there choose again in some order,
// and the result is continued from when it is not much more expensive than the cheapest yet
// (record to record). Half of the times they choose by shadow prices, the
// multipliers of the assignment's Lagrangian relaxation, found by subgradient steps
// after Polyak (Held, Wolfe, Crowder: Validation of subgradient optimization, 1974).
// Groups choose as a whole (units.go), but for seats that follow; a seat that may be in parts
// takes the fewest that hold it where no place does (parts.go, divide.go).
//
//	problem.go  what a problem is
//	split.go    what parts of a seat take and cost
//	deck.go     how units lie on a row's cards
//	rules.go    what seats must keep to among themselves
//	shadow.go   shadow prices
//	order.go    in which order places, and seats, are looked at
//	at.go       where a seat is
//	state.go    where all seats are, and what is free
//	units.go    groups choose a domain
//	parts.go    seats in parts, and who goes to a place in their stead
//	divide.go   which parts
//	ruin.go     who loses a place
//	scarce.go   accounts that are nearly used up
//	bounded.go  accounts that may come to an end
//	search.go   from result to result
//	anneal.go   the search of seats that are alone
//	solve.go    which search, and the turns of all others
//
// Invariants:
//   - What Solve returns takes no more of any row or account than it has, lays units
//     on cards as Row.Cards shows, leaves nobody without a place who must have one, and a
//     group whole or without any, but for seats that follow. Whoever it puts in parts has the
//     fewest that hold it, and no place does. It keeps to all rules (rules.go): spreads, who is apart,
//     and what may be spent on several.
//   - It costs no more than what it was given.
//   - Equal problems have equal answers: choices are drawn from a fixed sequence,
//     and no sum of floating-point numbers is fused.
//
// Solve is called by the planner's batches, from one goroutine; several may solve
// different problems at once.
package batch
