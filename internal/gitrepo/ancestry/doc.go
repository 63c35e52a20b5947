// Package ancestry answers what lies between commits: which commits one has and
// another has not, what two have in common, whether one contains another.
//
// # Invariants
//
//   - Answers are exact. Dates are their authors' to choose and are never looked
//     at: commits are ordered by depth, the length of the longest way to a commit
//     without parents, which is greater than that of every ancestor.
//   - Lists have each commit before all its ancestors.
//   - What is asked of two commits costs what lies between them and the last
//     commit through which every way from both leads. Where that is further than
//     10,000 commits, the depths of the whole history are found out, once: some 50
//     bytes of each commit are kept, and what is new costs what is new.
//
// # Who calls it
//
// gitrepo (who changed what since the accepted head), verify (which commits are
// judged, what a merge joins) and audit (the ledger's own line). A repository has
// one Graph, which they share where they read the same objects.
//
// # Concurrency
//
// A Graph may be used by any goroutine, if its Parents may.
package ancestry
