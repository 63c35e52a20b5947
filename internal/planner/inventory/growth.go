package inventory

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Capacity that does not exist yet (spec.scalableTo of a flavor): what a provider's
// autoscaler makes when pods ask for it. It is sold like any other, up to
// scalableTo, but only where what exists does not do: an offer that would have
// to grow goes after all that need not, whatever their scores, and no contract
// is moved to one because it is cheaper. What of a contract did not exist when
// it was decided is recorded with it (decision.scaled), and shown in its reason.

// grow notes what an autoscaler could add to an offer; what is free counts it
// once the offer's risk is known (assess).
func (in *Inventory) grow(o *Offer, figures v1alpha1.OfferFigures) {
	if o.Growth != nil {
		o.Capacity = o.Capacity.Sub(o.Growth)
		o.Growth, o.scalable = nil, nil
	}
	if len(figures.ScalableTo) == 0 {
		return
	}
	if more := in.facts.Names.VectorOf(ledger.Growth(figures)); !more.Within(nil) {
		o.Growth, o.scalable = more, figures.ScalableTo
		o.Capacity = o.Capacity.Add(more)
	}
}

// Scales reports whether an offer would have to grow to hold a size.
func (o *Offer) Scales(size quantity.Vector) bool {
	if o.Growth == nil {
		return false
	}
	for i, n := range size {
		if n > 0 && n > o.free.At(i)-o.Growth.At(i) {
			return true
		}
	}
	return false
}

// unbuilt is what of a size does not exist on an offer yet, in addition to what a contract
// that goes has of it; nil for nothing.
func (o *Offer) unbuilt(size, had quantity.Vector) quantity.Vector {
	if o.Growth == nil {
		return nil
	}
	var out quantity.Vector
	for i, n := range size {
		if exists := max(o.free.At(i)-o.Growth.At(i)+had.At(i), 0); n > exists {
			out = out.Set(i, n-exists)
		}
	}
	return out
}

// Scaled is what of a size an offer has yet to add, without what a contract that goes has
// of it; nil for nothing.
func (in *Inventory) Scaled(o *Offer, size, had quantity.Vector) v1alpha1.Resources {
	more := o.unbuilt(size, had)
	if more == nil {
		return nil
	}
	return in.facts.Names.Resources(more)
}
