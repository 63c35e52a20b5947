// Package theirs runs the reviews of tenants' own repositories: one reviews.Reviews for
// each source whose entry in fleet.yaml names a forge.
//
//	fleet.yaml ─entries─► Set ─► reviews of source a ──► forge of a, by the token of a
//	                         └─► reviews of source b ──► forge of b, by the token of b
//	                                     └── one reader, base and child: reviews.Common
//
// # Invariants
//
//   - The forge of a source is asked with that source's token alone, at a host that is
//     allowed; one that does not answer delays no other.
//   - An entry that changes ends the reviews that followed it, and others begin as after
//     a start: nothing of the former forge is kept.
//   - Whatever the number of sources, one pull request is planned at a time.
//
// # Who calls it
//
// The cli, for the daemon.
//
// # Concurrency
//
// Run is called by one goroutine; Wake by any, and it never blocks.
package theirs
