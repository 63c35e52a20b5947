package planner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
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

	names     *quantity.Names
	defaults  quantity.Vector // of replicas that leave them open
	latencies map[pair]int64

	inventory *inventory.Inventory
	traits    *traits
	shapes    map[string]*shape
	tariffs   map[*v1alpha1.Price]*tariff
	key       keyBuffer
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
	// whole is what the fleet has, load its workload; nil until asked.
	whole *account.Fleet
	load  *workload
	// overfull are the contracts that were more than their flavor or a budget
	// bears, in the round that left this base.
	overfull []string
}

// Bounds of what is kept: candidates of all shapes together, and offers in the
// list of those that were touched, as a multiple of all offers.
const (
	keptCandidates = 2_000_000
	keptTouched    = 4
)

// handOver is what a round that has decided leaves to the next. Nothing of the
// round itself is kept by it.
func (r *round) handOver() *base {
	r.forgetShapes()
	if forgotten, shortened := r.inventory.ShortenTouched(keptTouched*len(r.inventory.Offers()) + 1024); shortened {
		maps.DeleteFunc(r.shapes, func(_ string, s *shape) bool { return s.seen < forgotten })
		for _, s := range r.shapes {
			s.seen = 0 // they look at these once more, which changes nothing
		}
	}
	if r.inventory.Alterations() > len(r.inventory.Offers()) {
		maps.DeleteFunc(r.shapes, func(_ string, s *shape) bool { return !r.catchUp(s) })
		for _, s := range r.shapes {
			s.altered = 0
		}
		r.inventory.ForgetAltered()
	}
	r.inventory.Begin(inventory.Facts{}) // those of this round hold all of it
	r.overfull = append(sortedNames(r.excess), sortedNames(r.cut)...)
	left := r.base
	return &left
}

// forgetShapes drops those that were not asked for the longest, when there are
// too many candidates.
func (b *base) forgetShapes() {
	sum := 0
	keys := slices.Collect(maps.Keys(b.shapes))
	for _, s := range b.shapes {
		sum += s.weight()
	}
	if sum <= keptCandidates {
		return
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(b.shapes[x].used, b.shapes[y].used), strings.Compare(x, y))
	})
	for i := 0; sum > keptCandidates; i++ {
		sum -= b.shapes[keys[i]].weight()
		delete(b.shapes, keys[i])
	}
}

// weight is what a shape costs to keep, in candidates.
func (s *shape) weight() int { return len(s.cands) + len(s.at)/32 }
