// Package letgo judges by an operator's word whether a rewritten history is accepted. The
// word is outside the repository, in the trust root: who has a daemon's key cannot write it.
//
//	          ┌─► … ─► Drops        what had been accepted, or an ancestor of it
//	… ─► base ┤
//	          └─► Commit ─► … ─► head
//
// # Invariants
//
//   - An entry lets go of its Drops and what that contains, of nothing that came later:
//     an entry that stays in the file excuses no other rewrite.
//   - It counts on a branch whose head contains its Commit, and there alone; what comes
//     after Commit is held to the rules.
//   - Without Drops it lets go of nothing, and states only that Commit is the branch's to who
//     knows nothing of it.
//
// gitrepo (daemons) and audit (auditors) call it, with the same entries. It keeps nothing,
// and any goroutine may call it.
package letgo
