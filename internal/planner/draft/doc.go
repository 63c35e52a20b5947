// Package draft is the working state of one round: what it is given (Facts), what
// holds until the world changes (Base), and what it has done so far, each step of
// which can be taken back.
//
//	world.go, plan.go   what goes in and what comes out
//	facts.go            Facts, and what follows from them alone
//	base.go             Base, and what is asked of it alone
//	draft.go            Draft, and the journal by which it is taken back
//	job.go, sizing.go   an intent that is thought about: Job and its tasks
//	schedule.go         how long an intent's term is
//	frozen.go           what could not be read, and whose contracts that concerns
//	tally.go            the ledger's contracts by what a round asks of them
//	accounts.go         what is on tenants' accounts
//	phases.go           contracts move along their phases (package lifecycle)
//	standing.go         a contract's priority, notice and patience
//	leaving.go, sla.go, refused.go, remote.go   what else is known of a contract
//	version.go          the rules, by number
//	names.go            orders and keys of names
//	observations.go     what clusters report of contracts, by contract
//
// # Invariants
//
//   - Whoever tries something marks the journal first. Rolling back to the mark
//     forgets nothing of what was changed since: what offers have free and hold,
//     accounts, the contracts that change, what jobs hold, ordinals, claims, when
//     the next round is due and whether this pass got anywhere. What was looked at
//     is spent and not given back (TestDraft: every operation, alone and nested).
//   - Marks nest, and none outlives its round; rolling back takes as long as what
//     changed since. While no mark is open nothing is written down.
//   - A Put keeps inventory, accounts, remote namespaces and the plan's contracts
//     in step: nothing else changes them.
//   - Facts are changed by nobody but the estimate's replay, which moves Now on
//     under a mark.
//   - What goes on into the next round is in Base and nothing else of a Draft
//     (TestRoundsShareTheirBaseAlone).
//
// It knows nothing of how offers are chosen: that is package place, the layer above.
// A receiver r is the round that all layers are a part of. A method that reads Facts
// or Base alone belongs to those.
//
// # Concurrency
//
// One goroutine uses a Draft, that of its round. Worlds and plans are values.
package draft
