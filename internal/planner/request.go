package planner

import "github.com/fleetbroker/fleetbroker/internal/planner/inventory"

// request is how a job is to be served: what may be taken for it, and what its
// placement is for. It is handed down by value: who narrows it narrows a copy, and
// what a function does depends on the one that it is handed.
type request struct {
	// mayBorrow: its tenant may go beyond its quota, by what others leave of theirs.
	mayBorrow bool
	// only is the offer that alone is tried, provider the one on which all must be
	// placed that belongs together; nil and "" for any.
	only     *inventory.Offer
	provider string
	// withUnit: a copy of a job that is placed with those that belong to it, as the
	// job itself is.
	withUnit bool
	// inBatch: what is placed may be moved within its batch (repair.go).
	inBatch bool
	// dryRun: it is taken back at once and claims nothing of warm pools; unasked: it
	// is not what Explain asks about.
	dryRun, unasked bool
	// beside: what is placed stands beside the contract that it is to replace.
	beside bool
}

// rehearsal is what is tried only to see how it goes.
var rehearsal = request{dryRun: true, unasked: true}
