package ahead

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// views are what has been summed up of offers and of tenants while jobs book. Each booking
// that is made is added to them, so that hundreds of replicas, or of intents, on one offer cost
// no more than each its own. Whatever else changes the draft forgets them.
type views struct {
	axis     draft.Axis
	puts     int // of the draft, as it was summed up
	offers   map[*inventory.Offer]*booking.Running
	sums     map[sumOf]*ledger.Sum
	promised map[*account.Tenant]*draft.Promised
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
	v.puts = v.axis.Puts()
	v.offers, v.sums, v.promised = map[*inventory.Offer]*booking.Running{}, map[sumOf]*ledger.Sum{}, map[*account.Tenant]*draft.Promised{}
}

// refresh forgets what no longer is as it was summed up.
func (v *views) refresh() {
	if v.puts != v.axis.Puts() {
		v.forget()
	}
}

// of is what of an offer is free over time.
func (v *views) of(o *inventory.Offer) *booking.Running {
	v.refresh()
	p := v.offers[o]
	if p == nil {
		p = booking.Follow(v.axis.Profile(o, nil))
		v.offers[o] = p
	}
	return p
}

// keeps reports whether an offer holds all that is booked on it during a booking's term: then
// it holds that booking, whichever of the others come after it. False says nothing.
func (v *views) keeps(o *inventory.Offer, c *v1alpha1.Contract) bool {
	size := v.axis.Ahead(o, c)
	least, _ := v.of(o).Least(c.Spec.Term.Start, c.Spec.Term.End, size)
	for i, n := range size {
		if n > 0 && least.At(i) < 0 {
			return false
		}
	}
	return true
}

// figures are what contracts hold of an offer at an instant, and what its pool takes.
func (v *views) figures(o *inventory.Offer, at v1alpha1.Time) (held, pool v1alpha1.Resources) {
	v.refresh()
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
	v.refresh()
	p := v.promised[t]
	if !p.Holds() {
		p = v.axis.PromisedTo(t)
		v.promised[t] = p
	}
	return p.Limits(from, to)
}

// add adds a tenant's booking that was just put on an offer.
func (v *views) add(o *inventory.Offer, t *account.Tenant, c *v1alpha1.Contract) {
	if v.puts+1 != v.axis.Puts() {
		v.forget()
		return
	}
	v.puts++
	if p := v.promised[t]; p.Holds() {
		p.Add(c)
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
