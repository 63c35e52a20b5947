// Package lifecycle is what becomes of one contract, or of one intent's time, by
// what is seen of it: pure functions of values.
//
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
// The phase and its steps go into the ledger's table, what leads to it into Observe,
// and what it still holds into Phase.Held and Phase.Charged.
//
// # Who calls it
//
// internal/planner alone, for each contract and intent that a round looks at.
// Everything is safe for concurrent use.
package lifecycle
