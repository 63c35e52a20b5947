// Package place finds places for what jobs want, and takes them.
//
//	Task ─► Request (how it is to be served) ─► limits, rules, bars ─► best candidate ─► contract
//
//	request.go       Request: how a task is to be served
//	ask.go           what a job asks of package match
//	fill.go          Fill: a job's tasks, gangs all or none
//	attempts.go      a list of tasks by each alternative in turn, and in exchange for what goes
//	attempt.go       a list of tasks is placed whole by one alternative
//	adapt.go         a contract becomes what its intent now asks for, in place or in exchange
//	failover.go      what a provider no longer serves goes elsewhere
//	update.go        changes that go step by step
//	limits.go, spend.go   what a placement may still take of quota and budgets
//	related.go       which intents are together and apart, kept from round to round
//	bounds.go        limits, rules and bars (package rules) of one more replica, put together
//	memo.go          what was found out of a class
//	remap.go         what lies on a node that is gone gets another one
//	places.go        domains that are of nodes, such as racks
//	within.go, whole.go   replicas that share a domain, and what moves as a whole
//	domains.go       the search for a domain that holds all
//	seating.go       gangs spread by several keys, with all replicas in view (package seating)
//	together.go      intents that belong together, as one (those that move: package joint)
//	split.go, parts.go    replicas put together from several flavors, and what becomes of parts
//	allowance.go             what looking for parts may cost a round, and who has how much of it
//	unitlooks.go             what looking for one provider for intents that belong together may
//	division.go      how a batch may divide a replica again
//	warm.go          warm slices that are taken over
//	seat.go          what may still be moved within its batch
//	contract.go      how contracts are written
//	booked.go        what others have booked
//	failure.go       why nothing fits
//
// # Invariants
//
//   - A list of tasks is placed whole or leaves the draft as it was.
//   - Nothing is placed that its Request, the tenant's limits, the rules or a bar
//     rule out; each offer is counted once, under the first that it fails.
//   - Looks for parts count as if nothing were cached, and none is given back: a replay
//     stops at the same one.
//   - What a function does depends on the Request that it is handed: who narrows it
//     narrows a copy.
//   - Who may be made to give way is not decided here: Placer.Void is asked whether
//     a notice still applies, and Placer.Looked is called with what was looked for.
//
// Called by packages settle, contend and explain, and by the planner's batches and
// consolidation. One goroutine uses a Placer, that of its round.
package place
