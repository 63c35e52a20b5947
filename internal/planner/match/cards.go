package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// hosts reports whether an offer's cards hold a size as the request wants it laid.
func hosts(o *inventory.Offer, g *CardRequest, size quantity.Vector) bool {
	units := size.At(quantity.GPU)
	if o.Cards() == nil || units == 0 || g.Loose(o.Flavor.Spec.GPU) {
		return true
	}
	return o.Cards().Holds(units)
}

// HostsInstead reports whether an offer's cards and nodes hold a size of a request as if a
// contract, which holds so much of its nodes, were not there.
func HostsInstead(m *Matcher, w *Request, o *inventory.Offer, size quantity.Vector, c *v1alpha1.Contract, held *nodes.Holding) (fits bool) {
	o.Cards().Without(inventory.CardsOf(c), func() {
		o.Nodes().Without(held, func() { fits = hosts(o, w.GPU, size) && m.Packs(w, o, size) })
	})
	return fits
}

// FailsCapacity is what an offer has too little of for a size of a request: a resource, or
// a card that has so much free.
func (m *Matcher) FailsCapacity(w *Request, o *inventory.Offer, size quantity.Vector) string {
	if req := m.short(o, size); req != "" {
		return req
	}
	if !hosts(o, w.GPU, size) {
		return ReqCard
	}
	if !m.Packs(w, o, size) {
		return ReqNode
	}
	return ""
}

// LayOut chooses the cards of a contract of a size, which had others before: it
// stays on its card where that has the room. Where the offer tells its nodes, they are cards
// of those on which the contract lies; where it names none, nobody knows.
func (m *Matcher) LayOut(w *Request, o *inventory.Offer, size quantity.Vector, on []v1alpha1.ContractNode, had []v1alpha1.CardUnits) []v1alpha1.CardUnits {
	d, units := o.Cards(), size.At(quantity.GPU)
	if d == nil || units == 0 {
		return nil
	}
	if o.Nodes() != nil {
		return CardsOn(o, on, had, w.GPU.Loose(o.Flavor.Spec.GPU))
	}
	sum := int64(0)
	for _, u := range had {
		sum += u.Units
	}
	if sum == units {
		return had
	}
	d.Without(had, func() { had = m.layAnew(w, o, size, had) })
	return had
}

// layAnew chooses the cards of a contract that may stay on the one that it had, which
// is given back.
func (m *Matcher) layAnew(w *Request, o *inventory.Offer, size quantity.Vector, had []v1alpha1.CardUnits) []v1alpha1.CardUnits {
	d, units := o.Cards(), size.At(quantity.GPU)
	if w.GPU.Loose(o.Flavor.Spec.GPU) {
		return d.MostUsed(units)
	}
	if len(had) == 1 && units < d.PerCard() {
		if i := d.At(had[0]); i >= 0 && d.Free()[i] >= units {
			return d.Choose(units, i)
		}
	}
	_, card := m.packing(o, o.Free(), size)
	return d.Choose(units, card)
}

// CardsOn are the cards of nodes on which a contract's units lie that had others before, loose
// or together. Where it has as many of a node as before, they stay.
func CardsOn(o *inventory.Offer, on []v1alpha1.ContractNode, had []v1alpha1.CardUnits, loose bool) (out []v1alpha1.CardUnits) {
	o.Cards().Without(had, func() {
		for i := range on {
			units, stay, sum := on[i].Resources[o.GPUName].Int64(), []v1alpha1.CardUnits(nil), int64(0)
			for _, u := range had {
				if u.Node == on[i].Node {
					stay, sum = append(stay, u), sum+u.Units
				}
			}
			if sum != units {
				stay = o.Cards().On(on[i].Node, units, loose)
			}
			out = append(out, stay...)
		}
	})
	return out
}
