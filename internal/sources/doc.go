// Package sources reads the git repositories in which tenants keep intents of their
// own (Fleet.spec.sources), beside the rounds:
//
//	source ──fetch──► mirror ──judge──► snapshot ──Over──► the ledger's tree as it will be
//	       (30 s)     (disk)                                └─► read, planned on, and written
//	                                                            by the commit that decides on it
//
// # Invariants
//
//   - No round waits for a source, and no push: a round takes what was read when it
//     began. What came later is the next round's.
//   - What a source says replaces its copy on the ledger only if the copy's commit is
//     an ancestor of the new one, or an operator accepts the new one (Accept). A
//     history that was rewritten, a repository that is gone, does not answer or holds
//     garbage freezes that source alone: its copy stays in force.
//   - Of a source only YAML files below intents/<tenant>/ of its entry's tenants are
//     taken, and only within the bounds of v1alpha1 (MaxSourceFiles, MaxSourceBytes,
//     MaxSourceFile) and of a mirror (maxReceived, maxInflated).
//   - A mirror has at most maxMirror bytes and one fetch more, and all of them Options.Disk,
//     of which each source has a part that no other can take.
//   - What the copies of a source add to the ledger's history is bounded for a day
//     (MaxSourceVolume). The copy itself states what counts, so that it is the same for
//     every replica, and after a start.
//   - A head costs a bounded work and time (maxWork, Options.Judging), and one that costs
//     much is read less often: no source has more than a fifth of a processor for long.
//   - A source is asked at most every 30 s by the replica that decides, ten times less often
//     by the others, and not while its server asks to be left alone (pace.go); only at
//     the host of its URL, which must be allowed, and never at a link-local address. Its
//     credentials are found by its name and are given to nothing else.
//   - Mirrors are a cache: any may be deleted at any time, and those are that no entry
//     of the fleet that is acted on names. What counts as accepted is the copy on the
//     ledger.
//   - The head of a pull request (Pull) is read beside the mirror, within bounds, and
//     nothing of it is kept. Where pull requests are (Forge) is held to the same hosts
//     and addresses as the repository, with the source's own token.
//
// # Who calls it
//
// The daemon runs a Keeper; the reconciler asks it what to plan on (Over) and tells it
// what the fleet names (Follow). Reviews of tenants' pull requests ask for their heads
// and forges, the port of webhooks for secrets (Hook), and status, metrics, dashboard and
// notices for Status.
//
// # Concurrency
//
// A Keeper is safe for concurrent use. Each source has a goroutine of its own, so that
// one that hangs delays no other; packs are decoded a few at a time.
package sources
