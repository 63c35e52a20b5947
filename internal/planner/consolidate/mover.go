package consolidate

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/scarcity"
)

// mover is where a contract would go for another, if it may.
type mover struct {
	to    elsewhere
	found bool
}

// asked is where a contract would go for another, if it may.
func (x *maker) asked(j *draft.Job, c *v1alpha1.Contract) (to elsewhere, found bool) {
	m, known := x.movers[c]
	if !known && x.looks.Take(looksOfMover) {
		if x.movable(j, c) {
			x.keepAway(j)
			m.to, m.found = x.elsewhere(j, c)
		}
		if !x.looks.Ended() {
			x.movers[c] = m
		}
	}
	return m.to, m.found
}

// movable reports whether a contract may be moved for another: where consolidation may move it,
// it has been where it is for as long as an offer must be better, and depends on no other.
func (x *maker) movable(j *draft.Job, c *v1alpha1.Contract) bool {
	if ripe := v1alpha1.TimeOf(c.Spec.Term.Start.Add(x.hold)); ripe.After(x.Now.Time) {
		x.Due(ripe)
		return false
	}
	if _, shares := place.Shares(&x.Placer, j); shares {
		return false
	}
	return x.consolidable(j)
}

// rested reports whether a contract may move for another tenant again: each time that one of
// its intent did, as far as the ledger remembers, the next stays for twice as long. Else who
// comes and goes under other names has it move without end.
func (x *maker) rested(c *v1alpha1.Contract) bool {
	const doublings = 8
	n := 0
	for _, old := range x.W.Ledger.ByIntent(c.Metadata.Namespace, c.Spec.Intent.Name) {
		if d := old.Status.Displaced; d != nil && d.Cause == v1alpha1.Moved && !strings.HasPrefix(d.By, c.Metadata.Namespace+"/") {
			n++
		}
	}
	until := v1alpha1.TimeOf(c.Spec.Term.Start.Add(x.hold << min(n, doublings)))
	x.Due(until)
	return !until.After(x.Now.Time)
}

// justified reports whether a move for a job is worth what it costs in addition: the moved
// contract and the place that it makes cost at most as many times as much as both cost where
// they are as the fleet pays for the sake of others (Fleet.scarcity). No tenant pays more for
// what another wants.
func (x *maker) justified(j *draft.Job, c *v1alpha1.Contract, to elsewhere, place quantity.Micro) bool {
	if c.Metadata.Namespace != j.TenantName && to.more > 0 {
		return false
	}
	have := quantity.Wide{}.AddProduct(int64(to.more), 1000, 1)
	most := quantity.Wide{}.AddProduct(int64(x.weekly(c.Spec.Price)+place), scarcity.Premium(x.Fleet), 1)
	return to.more <= 0 || have.Compare(most) <= 0
}

// elsewhere is the cheapest other offer for a contract.
type elsewhere struct {
	offer *inventory.Offer
	alt   int
	more  quantity.Micro // an hour than it costs where it is, less than 0 if it saves
}

// elsewhere is where a contract would go for another: to the cheapest offer that its intent's
// weights do not score lower and that costs no more, of an intent that goes by cost alone to
// the cheapest that its own budget and its tenant's let it pay.
func (x *maker) elsewhere(j *draft.Job, c *v1alpha1.Contract) (best elsewhere, found bool) {
	m := x.Mark()
	defer x.Rollback(m)
	x.Match.Trim()
	p := x.presentOf(j, c, nil)
	if p == nil || !x.looks.Take(int64(len(p.class.Candidates))) {
		return best, false
	}
	costs, byCost := p.costs, p.class.Request.Weights.ByCostAlone()
	var at *match.Candidate
	for i := range p.class.Candidates {
		y := &p.class.Candidates[i]
		if !p.admits(y) || y.Vague || !byCost && y.Score < p.floor {
			continue
		}
		more := x.hourlyOf(y) - costs
		if more > 0 && !byCost {
			continue
		}
		if at == nil || more < best.more || more == best.more && match.Before(y, at, false) {
			at, best = y, elsewhere{y.Offer, p.alt, more}
		}
	}
	return best, at != nil
}
