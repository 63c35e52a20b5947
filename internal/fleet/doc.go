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
//
// # Mistakes
//
// What becomes of a file with a mistake:
//
//   - an intent's: cannot be read (YAML, unknown field, wrong kind of value, wrong
//     name or directory); Freeze of its path, and of the intents it seems to name
//   - an intent's: can be read, but is wrong (unknown consumer, value, expression,
//     claim); an Intent with a Problem: refused, its contracts kept
//   - two intents': one name; Freeze of that intent
//   - a kustomization: cannot be built, or makes what cannot be read; Freeze of
//     its directory
//   - fleet, tenant, cluster, flavor, prices: any error; its last good version,
//     else: everything of the fleet, tenant or cluster is frozen
//   - a link, a submodule, an odd path: Freeze of what it may have named
//   - any: a reference to what may come later (region, cluster to avoid, sibling);
//     a warning
//
// A directory with a kustomization under intents/<tenant>/ is built as a whole: plain
// files in and below it count only through it. One that another kustomization refers to is
// a base and makes nothing by itself; components never do. Where nothing that refers to it
// can be built, a base is frozen: what it had made by itself stays, and nothing begins. Of a
// kustomization that cannot be parsed, entries of lists count as what it refers to.
//
// Costs, go test -bench . ./internal/fleet (100 tenants × 1,000 intents and one × 20,000):
// a one-file change opens only the directories on its way and parses one file; a new
// tenant or cluster checks every intent again without parsing any.
package fleet
