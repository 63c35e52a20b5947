// Package formulate makes a batch of the planner a problem in plain numbers, which package
// batch solves: offers are rows, classes are kinds, and what intents ask of each other's
// places are groups and rules.
//
//	rows.go       offers as rows, and what a place there takes and charges
//	problem.go    rows, kinds, seats, accounts, and what those without a place count for
//	kept.go       which places a kind has where there are too many
//	scarce.go     what places count for beside their prices (package scarcity)
//	parts.go      replicas that may be put together from parts
//	bindings.go   who must stay because of others, and who belongs to whom
//	rules.go      domains, spreads, budgets, and intents that are apart
//
// Invariants:
//   - Who is in a problem may sit wherever package batch puts it: what its place depends on
//     is in the problem, too, or is a rule there.
//   - Scaling all prices scales what a replica counts for that has no place.
//   - Equal placers and seats give equal problems.
//
// Called by planner's repair of batches, from the goroutine of its round; it changes
// nothing but what package match remembers.
package formulate
