// Package fleet reads what people write into a fleet repo: a git tree of
// inputs becomes a Fleet value and diagnostics.
//
//	tree ─► scan ─► parse ─► check alone ─► check together ─► Fleet
//	        (dirs)  (files)  (one file)     (cross-references)
//
// Invariants:
//
//   - One bad file hurts nobody. An intent's file that cannot be read freezes
//     what it last named (Freeze), a failing kustomization freezes its
//     directory, two files that name one intent freeze it; a broken fleet,
//     tenant, cluster, flavor or price file keeps its last good version, taken
//     from the last Fleet or from older trees. What can be read but is wrong (an
//     unknown consumer, a misspelt enum) becomes an Intent with a Problem.
//   - Every problem has a file, line and column, and says what to write
//     instead. All problems are reported, not only the first.
//   - Reading is incremental, and equals reading from scratch: directories that
//     did not change (by hash) are not opened, files that did not change are not
//     parsed, and intents are checked again only when what they are checked
//     against changed. Results are sorted; equal trees give equal Fleets.
//   - Of tenants' own repositories (spec.sources) only the copies on the ledger are
//     read, each for the tenants of its entry alone.
//   - Nothing in a tree can make the reader exceed its bounds: sizes, documents,
//     aliases, nesting, path lengths, expression cost; symbolic links and
//     submodules are refused; kustomize builds see a file system in memory that
//     holds only their own tenant's directory and bases/.
//
// The reconciler and the CLI call it. A Reader holds caches and belongs to one
// goroutine at a time (it uses more inside); a Fleet is immutable and shared.
package fleet
