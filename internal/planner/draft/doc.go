// Package draft is the working state of one round: what it is given (Facts), what
// holds until the world changes (Base), and what it has done so far, each step of
// which can be taken back.
//
//	world.go, plan.go   what goes in and what comes out
//	facts.go            Facts, the Moment, and what follows from them alone
//	base.go             Base, and what is asked of it alone
//	journal.go          each change is written down with what was there before
//	axis.go             what a round knows of bookings, kept by each put
//	view.go             what it knows of a contract next to the ledger
//	accounts.go         what is on tenants' accounts
//	draft.go            Draft: versions of contracts, what is lent, what is noted
//	rollback.go         how it is taken back
//	job.go, sizing.go, whole.go   an intent that is thought about: Job and its tasks
//	known.go            how a job waits, where that is known from the round before
//	schedule.go         how long an intent's term is
//	frozen.go           what could not be read, and whose contracts that concerns
//	tally.go            the ledger's contracts by what a round asks of them
//	phases.go           contracts move along their phases (package lifecycle)
//	standing.go         a contract's priority, notice and patience
//	lost.go             replicas that a gang lost, and when all of it moves
//	leaving.go, sla.go, refused.go, remote.go   what else is known of a contract
//	version.go          the rules, by number
//	names.go            orders and keys of names
//	ahead.go, calendar.go   contracts on the time axis, and what is booked for people
//	promised.go         what a tenant has and has booked in a time to come, booking by booking
//	nodes.go            what of an offer's nodes is free in a time to come
//	observations.go     what clusters report of contracts, by contract
//
// # Invariants
//
//   - Whoever tries something opens a mark first. Rolling back to it is the identity:
//     each field of the round, of its layers and of its jobs is as it was, what
//     offers have free and hold and what is on accounts too. TestRollbackIsTheIdentity
//     compares all of it after every operation, alone and nested, and lists what a
//     rollback may leave: what looking costs (contracts made on trial, spare work),
//     and caches. A cache follows from the world, or from what is asked as of the
//     instant that the round decides at: classes of requests, relations, accounts
//     that were opened, the index of jobs, numbers of resources.
//   - A job that others know is changed after EditJob; its lists are appended to or
//     replaced, not written into (Own). Other fields change through Set, SetKey and Delete, or write
//     down themselves what they were. What comes of a trial is copied before the
//     rollback and written after it.
//   - Offers and accounts count their changes up, also when these are taken back
//     (inventory.Touched, account.Tenant.Version): so what was derived from them in
//     between is derived again. What was taken since a mark and is not taken back is
//     another question, which the journal answers (Changed).
//   - Marks nest, and none outlives its round; rolling back takes as long as what
//     changed since. While no mark is open nothing is written down.
//   - A Put keeps inventory, accounts, remote namespaces and the plan's contracts
//     in step: nothing else changes them.
//   - Facts are changed by nobody. The instant as of which it is decided is state
//     of the draft (Moment): accounts, prices, notices and terms must all be asked as
//     of one, so that it is no field of a placement's request. A replay of the future
//     alone moves it on, under a mark.
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
