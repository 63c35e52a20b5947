// Package verify finds out what of the inputs may be acted on in a fleet whose
// verification.mode is signed: it walks every commit between the last accepted
// one and the head, and lays the last verified content over what no
// authorised account has signed.
//
//	accepted ──► commit ──► commit ──► merge ──► head
//	   E    ──►    E    ──►    E    ──►   E  ──►  E      what may be acted on
//	                            ╲ commit ─╱
//
// # What counts
//
// E is a commit's tree with, for some paths, older content: what is held back.
// A commit carries its parent's E on. A path that it changes is taken over when
// the commit is signed, over its bytes as they are stored, by a key that may
// sign for that path; else the path is held back. So is a change of intents by
// one of a tenant's signers who is not among its approvers, until an approver
// merges it with a signed merge commit. A path whose content is again what E
// has is free again.
//
// A merge says by itself nothing that its sides do not say: its E is the
// three-way merge of the E of its sides, path by path. Wherever its tree says
// something else (a conflict resolved, an evil merge, a rollback by taking the
// older side), that is the merge's own change and must be signed like any other.
// A signed merge does not make up for unsigned commits that it brings in.
//
// Who may sign for what is read from the E of the commit before, on the branch's
// own line from the accepted commit; a merged branch is judged by the line it
// is merged into, whole. So a key never speaks for the commit that adds it, nor
// for others of the branch that does; a key that was taken away does not speak
// for anything that is merged later; and the outcome is the same however often
// the branch is looked at.
//
// # First start
//
// Without an accepted commit the head is taken as it stands: there is no state
// to hold it to. So is one after an accepted commit in whose whole history no
// fleet.yaml can be read, and everything while the mode is none.
//
// The reconciler calls it, its reviews for what a pull request would bring, and
// the CLI for `validate --base`. A Verifier belongs to one goroutine at a time.
package verify
