// Package gen makes large fleet repositories: inputs as people would write
// them, and beside them the ledger that a daemon would have written for them,
// so that a daemon that reads the repository finds only keeps.
//
//	Options ─► inputs ─► fleet, market ─► planner.Decide ─► contracts, manifests
//	              └────────────── git fast-import ──────────────┘ (one commit a branch)
//
// Nothing is made up beside the product: the ledger's files are what the
// planner decides and what the rooms ledger and manifests write. Equal options
// give equal repositories.
//
// The benchmarks call it, and tests that need a fleet of a size. Nothing is
// shared between calls; a Fleet belongs to one goroutine.
package gen
