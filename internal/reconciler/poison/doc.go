// Package poison finds the piece of the inputs that ends the process reading it.
//
//	Watch.Begin ─► read or plan ─► Watch.Done
//	     │ the process ends here
//	     ▼ next start
//	Watch.Suspects ─► Trial: that piece alone in a child ─► set aside, or known good
//
// Invariants:
//
//   - A note convicts nobody: eviction, SIGKILL or memory taken by others leave
//     one, too. Only a child that ends twice on the piece, by its own bounds or by
//     a crash, does.
//   - Notes are of pieces that are not known to be good, and are not synced: they
//     outlive the process, not the machine. A round in which nothing is new
//     writes none.
//   - A damaged file of notes is set aside under a name that the log gives, and
//     the start goes on without.
//
// The reconciler calls it. A Watch is safe for concurrent use; a Trial belongs to
// one goroutine.
package poison
