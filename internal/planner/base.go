package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// base is what was worked out for a world and holds until that world changes:
// what a Session keeps between two rounds. It is handed over whole. A field
// belongs here, or in the base of its layer, if the next round needs it, and
// session_update.go then has what brings it up to date; all other fields are
// made again by each round.
type base struct {
	own   ownBase
	draft draft.Base
	place place.Learned
	// whole is what the fleet has; nil until asked.
	whole *account.Fleet
}

// ownBase is what a round leaves of what it knows besides its layers.
type ownBase struct {
	// given is the world as it was handed in.
	given draft.World
	// refusals of contracts by their providers, by contract.
	refusals map[string]draft.RefusalRecord
	// pools are the fleet's warm pools as intents.
	pools []*model.Intent
	// orphans are intents that are no more and of which the ledger still holds
	// or remembers something; renames those that state what they were called before.
	orphans, renames map[[2]string]bool
	// cached are the decisions of quick, by place in intents.
	cached []cachedDecision
	// overfull are the contracts that were more than their flavor or a budget
	// allows, in the round that left this base.
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
	r.Match.Keep(keptCandidates, keptTouched*len(r.Inventory.Offers())+1024)
	// The facts of this round hold all of it.
	r.Inventory.Begin(inventory.Facts{})
	r.Match.Begin(match.Facts{})
	r.overfull = append(draft.SortedNames(r.Excess), draft.SortedNames(r.Cut)...)
	return &base{own: r.ownBase, draft: r.Base, place: r.Learned, whole: r.Whole}
}
