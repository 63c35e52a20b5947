package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Loose reports whether the units that a request comes to may lie on any cards.
func (g *CardRequest) Loose(have *v1alpha1.FlavorGPU) bool {
	return g.Share == 0 && (have.Profile != "" || have.Sharing == "mig")
}

// hosts reports whether an offer's cards hold a size as the request wants it laid.
func hosts(o *inventory.Offer, g *CardRequest, size quantity.Vector) bool {
	units := size.At(quantity.GPU)
	if o.Cards() == nil || units == 0 || g == nil || g.Loose(o.Flavor.Spec.GPU) {
		return true
	}
	return o.Cards().Holds(units)
}

// HostsInstead is hosts as if a contract were not there.
func HostsInstead(o *inventory.Offer, g *CardRequest, size quantity.Vector, c *v1alpha1.Contract) (fits bool) {
	o.Cards().Without(inventory.CardsOf(c), func() { fits = hosts(o, g, size) })
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
// stays on its card where that has the room.
func (m *Matcher) LayOut(w *Request, o *inventory.Offer, size quantity.Vector, had []v1alpha1.CardUnits) []v1alpha1.CardUnits {
	d, units := o.Cards(), size.At(quantity.GPU)
	if d == nil || units == 0 {
		return nil
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
	if w.GPU == nil || w.GPU.Loose(o.Flavor.Spec.GPU) { // nil: a size of the offer brings them, unasked for
		return d.MostUsed(units)
	}
	if len(had) == 1 && units < d.PerCard() && d.Free()[had[0].Card] >= units {
		return d.Choose(units, int(had[0].Card))
	}
	_, card := m.packing(o, o.Free(), size)
	return d.Choose(units, card)
}
