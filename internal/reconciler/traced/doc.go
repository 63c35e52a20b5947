// Package traced is what is measured and traced of rounds: how long their steps took, the
// trace that led to each commit, and which trace a contract is in until it is Active.
//
//	round.go    the round under way: its steps, its span, the trailer of its commits
//	keeper.go   contracts that are on their way, with the commits that began it
//
// # Invariants
//
//   - Where tracing is off a round costs what it cost without: its steps are timed, and
//     nothing else is done (TestOffCostsNothing).
//   - A round that nothing led to and that does nothing leaves no span.
//   - The trailer is made of the round's own span, which the commit's plan and files know
//     nothing of; a plan with another trace is the same plan (TestTraceIsNoPartOfAPlan).
//   - What a contract is on its way by is read from the ledger, so that every replica, and
//     one that has just started, knows it: the trailer of the first commit that names the
//     contract since it was last Active. Only commits that a daemon of this fleet made count.
//   - What is remembered is bounded, and so is what is read of history at once.
//
// The reconciler's goroutine calls Round and Keeper.Follow; the rest of Keeper is safe for
// concurrent use.
package traced
