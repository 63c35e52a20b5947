package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// base is what was worked out for a world and holds until that world changes:
// what a Session keeps between two rounds. It is handed over whole. A field
// belongs here if the next round needs it, and session_update.go then says what
// brings it up to date; all other fields belong to round, which makes them anew.
type base struct {
	// given is the world as it was handed in.
	given World

	// refusals of contracts by their providers, by contract; marks are the
	// providers that are kept out of the market for them.
	refusals map[string]refusalRecord
	marks    map[string]refusalMark
	// mapped are the remote namespaces of the ledger's contracts.
	mapped mappings

	names    *quantity.Names
	defaults quantity.Vector // of replicas that leave them open

	inventory *inventory.Inventory
	match     *match.Matcher
	// nothing are the tasks of replicas that have nothing, by number: all jobs
	// share them, and nobody changes them.
	nothing []task

	// tally is what the ledger holds, at the start.
	*tally
	// pools are the fleet's warm pools as intents.
	pools   []*model.Intent
	intents []*model.Intent // by tenant and name, those of warm pools among them
	// orphans are intents that are no more and of which the ledger still holds
	// or remembers something; renames those that say what they were called before.
	// relatives those with together or apart.
	orphans, renames, relatives map[[2]string]bool
	// verdicts are those of quick, by place in intents.
	verdicts []verdict
	// related are the intents that are together or apart; made on first use.
	related *relations
	// whole is what the fleet has; nil until asked.
	whole *account.Fleet
	// overfull are the contracts that were more than their flavor or a budget
	// bears, in the round that left this base.
	overfull []string
}

// Bounds of what is kept: candidates of all classes together, and offers in the
// list of those that were touched, as a multiple of all offers.
const (
	keptCandidates = 2_000_000
	keptTouched    = 4
)

// handOver is what a round that has decided leaves to the next. Nothing of the
// round itself is kept by it.
func (r *round) handOver() *base {
	r.match.Keep(keptCandidates, keptTouched*len(r.inventory.Offers())+1024)
	// The facts of this round hold all of it.
	r.inventory.Begin(inventory.Facts{})
	r.match.Begin(match.Facts{})
	r.overfull = append(sortedNames(r.excess), sortedNames(r.cut)...)
	left := r.base
	return &left
}
