package ahead

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// views are what a search has summed up of offers and of its tenant. Each booking that it
// makes is added to them, so that hundreds of replicas on one offer cost no more than each
// its own. Whatever else changes the draft, a rollback above all, forgets them.
type views struct {
	axis     draft.Axis
	offers   map[*inventory.Offer]*booking.Running
	sums     map[sumOf]*ledger.Sum
	promised *draft.Promised
}

// sumOf is what a sum is of.
type sumOf struct {
	offer *inventory.Offer
	at    v1alpha1.Time
}

func newViews(r *draft.Draft) *views {
	v := &views{axis: draft.OnAxis(r)}
	v.forget()
	return v
}

// forget makes all be summed up again.
func (v *views) forget() {
	v.offers, v.sums, v.promised = map[*inventory.Offer]*booking.Running{}, map[sumOf]*ledger.Sum{}, nil
}

// of is what of an offer is free over time.
func (v *views) of(o *inventory.Offer) *booking.Running {
	p := v.offers[o]
	if p == nil {
		p = booking.Follow(v.axis.Profile(o, nil))
		v.offers[o] = p
	}
	return p
}

// figures are what contracts hold of an offer at an instant, and what its pool takes.
func (v *views) figures(o *inventory.Offer, at v1alpha1.Time) (held, pool v1alpha1.Resources) {
	if v.sums[sumOf{o, at}] == nil {
		list := map[*inventory.Offer][]*v1alpha1.Contract{}
		for _, c := range v.axis.ContractsOn(o) {
			m := v.axis.OfferOf(c)
			list[m] = append(list[m], c)
		}
		v.sums[sumOf{o, at}] = ledger.SumAt(o.Flavor, list[o], at)
		for _, m := range o.PoolPeers {
			v.sums[sumOf{m, at}] = ledger.SumAt(m.Flavor, list[m], at)
		}
	}
	var peers []*ledger.Sum
	for _, m := range o.PoolPeers {
		peers = append(peers, v.sums[sumOf{m, at}])
	}
	return ledger.FiguresOf(v.sums[sumOf{o, at}], peers)
}

// limits are what a tenant's next booking of a term may take.
func (v *views) limits(t *account.Tenant, from, to v1alpha1.Time) account.Limits {
	if !v.promised.Holds() {
		v.promised = v.axis.PromisedIn(t, from, to)
	}
	return v.promised.Limits()
}

// add adds a booking that was just put on an offer.
func (v *views) add(o *inventory.Offer, c *v1alpha1.Contract) {
	if v.promised.Holds() {
		v.promised.Add(c)
	}
	for _, m := range append([]*inventory.Offer{o}, o.PoolPeers...) {
		if p := v.offers[m]; p != nil {
			p.Add(booking.Hold{Name: c.Metadata.Name, From: c.Spec.Term.Start, To: c.Spec.Term.End, Size: v.axis.Ahead(m, c)})
		}
	}
	for of, sum := range v.sums {
		if of.offer == o && !sum.Add(c) {
			v.forget()
			return
		}
	}
}
