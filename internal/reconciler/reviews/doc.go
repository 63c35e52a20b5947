// Package reviews looks after the forge's pull requests: it plans each open one
// and posts the plan, and tells merged ones what was reserved.
//
//	list ─► head, base new? ─► pending ─► read, merge, plan ─► comment, lines ─► status
//	merged ─► the ledger has it ─► comment with the contracts
//
// It runs beside the rounds and never inside one: it reads the reconciler's
// View, which is immutable, and plans by the planner's pure function.
//
// # Invariants
//
//   - A status is bound to the head's commit, the base's inputs and the plan's
//     digest. When the head or the base's inputs change, it is pending before
//     anything else happens; it is success only after a plan was made, and its
//     comment posted.
//   - While no plan can be made (the daemon has just started, is deaf, or cannot
//     read the repo) nothing is said but pending and why.
//   - What is posted changes when the plan does, and for the same head at most
//     once in Options.Refresh.
//   - A pull request from a fork is planned only when a person with write access
//     named its very head in a comment (forge.PlanCommand); until then it is
//     pending. A label is no such word: not every forge says whether it was set
//     before or after a push.
//   - What a fork brings is bounded by counts, and read and planned alone in a
//     child process first; what kills that is not read here.
//   - A pull request is data, whoever opened it: its head is read beside the
//     local copy, within bounds, and nothing of it is followed or run.
//   - Its commits are verified as if they were merged now by a merge commit that
//     nobody signed.
//   - The daemon's own pull request is not planned: it passes when what stands on
//     its branch is what was offered last.
//   - Nothing is lost by a restart: comments are found by their markers again,
//     and pull requests merged meanwhile by the newest commits of the inputs.
//   - Of several daemons one posts (Options.Speaks).
//   - Reviews of tenants' own repositories (Options.Source) follow the same rules: the
//     base is the source's copy on the ledger, only files that its entry in fleet.yaml
//     allows are taken, and a head that must be signed and is not fails the check. What
//     was merged while no daemon ran is not told there.
//   - However many repositories are reviewed, one pull request is planned at a time
//     (Common), and none waits for the forge or the git server of another.
//
// # Who calls it
//
// The cli, for the daemon; package theirs, for the repositories of tenants.
//
// # Concurrency
//
// Run is called by one goroutine; Wake by any, and it never blocks.
package reviews
