// Package audit reads a fleet's ledger as an accountant does: from its history
// alone, commit after commit, believing nothing that can be derived again.
//
//	history ─► line of ledger commits ─► what each changed ─► rules ─► violations
//	                                                      └─► events (who, what, why, cost)
//
// # What Verify holds a commit to
//
//	signature   a commit of ours is signed by a key that was trusted before it: the trust root's, or let in by one
//	foreign     generated paths are written by nobody else, merges drop nothing; undone puts back what stood there
//	tree        no commit has a tree that git refuses (fsck --strict) or that is too large; one that has says nothing
//	sequence    Ledger counts up by one, Fleet stays, and what is known to have stood is there
//	trailers    Inputs, Market, Plan and Now are there and in order, a decision has its
//	            Round, Contract, Set-Aside and message say what changed, and neither
//	            Renderer nor Rules falls
//	inputs      the inputs named are on the inputs branch, descend from those before and never go back
//	plan        the Plan digest is that of what the commit writes
//	readable    every file is one of the ledger's, in its place
//	phases      steps follow the phase table, history only grows, nothing leaves before its end
//	contract    what was agreed changes only with a new decision
//	intent      the intent stands in the inputs with this digest, written by this author
//	source      the copies of sources are what their source.yaml, the commit and fleet.yaml say
//	oversold    what is placed or enlarged fits the figures that the contract records (invariant 2)
//	spend       accrued cost is price times time, and what leaves the tree is carried over
//	manifests   manifests are what the contracts render to, in the same commit (invariant 1)
//
// # Invariants
//
//   - Verify is incremental: a commit costs what it changed, not the ledger.
//   - Same history, same violations, in the order of history.
//   - A violation is reported at the commit that made it, and what follows is
//     judged by what stands there then, so that one mistake is told once.
//   - Nothing that is judged goes by dates: ancestry is exact, and signers are
//     those in force before a commit.
//   - What cannot be judged is noted, neither a violation nor passed over: the
//     manifests of a rendering that this program does not know (Renderer), and
//     decisions by rules that it does not know (Rules).
//   - What gives rights in the inputs is held to the trust root from where on the
//     daemon did so: its first commit with the trailer Root.
//
// # Who calls it
//
// The CLI (`audit`, `cost`) and the simulation's final judgement. It knows git
// by gitobj and Keys only; its caller brings the objects.
//
// # Concurrency
//
// Functions may be called by any goroutine; a History must allow it.
package audit
