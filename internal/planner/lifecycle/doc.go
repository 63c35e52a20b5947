// Package lifecycle is what becomes of one contract, or of one intent's time, by
// what is seen of it: pure functions of values.
//
//	codes.go	why an intent is where it is, for programs
//	observe.go	the phase in which a charged contract is seen to be, and why
//	missing.go	what a contract is missing on its consumer to be usable
//	release.go	the way of a contract to its end, and what was denied
//	notice.go	notices to give way, and deliveries that take too long
//	schedule.go	windows, the first start and the end of an intent's term
//	state.go	what the ledger remembers of an intent
//
// # Invariants
//
//   - Nothing here changes what it is handed: a contract's next version is a copy,
//     and a Transition is applied by the caller, who books it.
//   - What nobody has seen changes nothing: an observation that is zero proves
//     neither presence nor absence, and a contract then stays in its phase.
//   - A phase is left only by the ledger's table (ledger.Books.Transition).
//   - A contract that is being released keeps its capacity until slice, virtual node
//     and Node are seen gone on the consumer and its quota on the provider, or an
//     operator forces its end.
//   - One cause has one code; a message may change by the second, and alone is worth
//     a new version only where it names the newest trouble of a delivery.
//   - No clock is read: now is a value, and each result has when the same may be
//     decided otherwise though nothing else changed.
//
// # Adding a phase
//
// The phase and its steps go into the ledger's table (ledger.Books.Transition), what
// leads to it into Observe, what it still holds into Phase.Held and Phase.Charged, whether
// it costs money into the ledger's accrues, and the step into the diagram of
// the planner's package comment (TestDiagram_HasEachStepOfTheTable). Who asks for one phase by
// name has to be asked whether the new one is meant too; TestPhases of test/rooms holds this list:
//
//	lifecycle/observe.go    growing and unseen: what is kept while nothing is reported
//	lifecycle/release.go    the way to the end
//	lifecycle/notice.go     what takes too long to be usable
//	draft/tally.go          what of the ledger is being released
//	draft/axis.go, draft/ahead.go, draft/calendar.go, draft/facts.go, draft/nodes.go, ahead/begin.go,
//	ahead/ladder.go, planner/guard.go, planner/invariants.go, settle/givenup.go
//	                        what is booked, and what of it begins
//	report/sentences.go     what is shown of a booking
//	invariant/invariant.go, invariant/aftermath.go, invariant/ahead.go
//	                        what of a finished plan takes capacity, and when
//	draft/job.go            which versions a job looks at again
//	draft/leaving.go        what its tenant gave up itself
//	draft/lost.go           since when a replica of a gang is lost
//	draft/refused.go        whether a contract is denied now
//	draft/remote.go         mapsAway: whose namespaces are taken at a provider
//	draft/sla.go            what may break sla.maxTimeToActive
//	place/update.go         works: whether pods can use it
//	place/warm.go           what can be taken over from a warm pool
//	settle/demand.go        which replicas of one that follows demand count as started
//	settle/denials.go       what a denial means
//	contend/ends.go, contend/reserve.go, contend/preempt.go, contend/displace.go
//	                        what is on its way out and need not be asked to leave
//	consolidate/consolidable.go  consolidable: what may be moved for a better price
//	planner/sift.go         quick: what is served as it asks
//
// Outside of the planner it is asked for by the ledger (accrues: what costs money) and by the
// rooms agent, audit, cli, delivery, doctor, manifests, notify, reconciler, review, simulate
// and ui (`git grep v1alpha1.Phase` finds the places). The public types in schemas are made
// by `make generate`.
//
// # Who calls it
//
// internal/planner alone, for each contract and intent that a round looks at.
// Everything is safe for concurrent use.
package lifecycle
