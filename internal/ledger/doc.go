// Package ledger is the contracts of a fleet at one commit: what is reserved,
// for whom, what it has cost, and how much of a flavor that leaves.
//
// A Ledger is an immutable value with the shape of its directory,
//
//	contracts/<tenant>/<xx>/<intent>/<contract>.yaml
//	contracts/<tenant>/<xx>/<intent>/_intent.yaml
//	contracts/<tenant>/spend-<yyyy-mm>.yaml
//	contracts/_set-aside.yaml
//
// and a node for each directory of it: Read keeps the nodes whose git tree has
// the same hash as in the ledger before, With copies only those on the way to
// what changes. Beside the nodes stand ordered indexes (by name, flavor
// and consumer) in immutable maps, changed entry by entry.
//
// # Phases
//
// Phases follow this table; Books.Transition refuses every other step.
//
//	from        to
//	(new)       Reserved, Booked
//	Booked      Reserved, Released, Expired, Failed
//	Reserved    Peering, Active, Degraded, Releasing
//	Peering     Active, Degraded, Releasing
//	Active      Degraded, Releasing
//	Degraded    Reserved, Peering, Active, Degraded (another reason), Releasing
//	Releasing   its target: Released, Expired, Preempted or Failed; Failed by an operator
//	(ended)     nothing
//
// One way leads past it: a warm contract whose slice another takes over is
// Released at once (Books.Claim).
//
// # Invariants
//
//   - A contract's capacity is held from Reserved until it leaves Releasing. A booking's is
//     promised for its term, and counts at those instants alone (AheadOf): nothing of it
//     exists yet, so it ends without Releasing.
//   - A file that cannot be read is a Problem, never an absent contract; a
//     ledger with problems must not be written over (Broken).
//   - What a tenant has spent in a month is the same before and after an ended
//     contract leaves the tree (Books.Retire).
//   - Capacity is integers, money is decimal; nothing here is a float.
//
// # Who calls it
//
// The reconciler reads it, the planner decides on it and changes it with With,
// rendering and the CLI look things up. It imports nothing but the API. It does
// no I/O but through the tree it is given.
//
// # Concurrency
//
// Everything is safe for concurrent use, and nothing that is returned may be
// modified: contracts, states and spends are shared between ledgers.
//
// # From a tree to figures
//
//	flowchart LR
//	  T[git tree of the ledger] -- Read: only what differs --> L[Ledger, an immutable value]
//	  L -- With changes --> L2[Ledger after them]
//	  L2 -- Files --> T2[files of one commit]
//	  L --> F[Figures: capacity, used, held]
//	  L --> M[Books: accrued, held of budgets, spend by month]
//
// Capacity is one sum, made in one place: capacity × overcommit − used − Σ max(contract,
// what runs or is granted under it). Money is decimal and follows from a contract alone:
// per second, from Reserved to Releasing, except while its provider is at fault. When an
// ended contract leaves the tree, what it cost moves to spend-<yyyy-mm>.yaml, to the last
// digit.
package ledger
