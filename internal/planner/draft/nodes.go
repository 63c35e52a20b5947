package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
)

// Nodes are what of an offer's nodes is free during all of [from, to), to zero being no end:
// now, and what ends until from, without what is booked then. Contracts named in except
// count as not there. It is a map of its own; nil where the offer tells no nodes.
func (r Axis) Nodes(o *inventory.Offer, from, to v1alpha1.Time, except map[string]bool) *nodes.Map {
	if o.Nodes() == nil {
		return nil
	}
	m := o.Nodes().Clone()
	var list []nodes.Booking
	take := func(at *inventory.Offer, h *nodes.Holding, sign int64) {
		list = append(list, nodes.Booking{Holding: shared(o, at, h), Sign: sign})
	}
	for _, c := range r.ContractsOn(o) {
		at, name := r.OfferOf(c), c.Metadata.Name
		if at == nil {
			continue
		}
		switch {
		case c.Status.Phase == v1alpha1.PhaseBooked:
			if !except[name] && c.Spec.Term.End.After(from.Time) && (to.IsZero() || c.Spec.Term.Start.Before(to.Time)) {
				take(at, r.bookedOn(at, c), 1)
			}
		case !c.Status.Phase.Held() || r.lent[name]:
		case except[name]:
			h := HoldingOf(r.Draft, at, name, c)
			take(at, &h, -1)
		default:
			if end := r.freeAt(c); from.After(r.Now.Time) && !end.IsZero() && !end.After(from.Time) {
				h := HoldingOf(r.Draft, at, name, c)
				take(at, &h, -1)
			}
		}
	}
	m.BookAll(list)
	return m
}

// BookedOn is what a booking has of an offer's nodes during its term; it is not to be changed.
func (r Axis) BookedOn(o *inventory.Offer, c *v1alpha1.Contract) *nodes.Holding {
	at := r.OfferOf(c)
	if at == nil {
		return &nodes.Holding{}
	}
	return shared(o, at, r.bookedOn(at, c))
}

// bookedOn is BookedOn of a booking's own offer. It is found once: many ask for it.
func (r Axis) bookedOn(at *inventory.Offer, c *v1alpha1.Contract) *nodes.Holding {
	known := r.aheads().holdings
	if known[c] == nil {
		held := *c
		held.Status.Phase = v1alpha1.PhaseReserved
		h := r.Inventory.Holding(at, c.Metadata.Name, &held, inventory.Sold(r.Names, c, at.Flavor))
		known[c] = &h
	}
	return known[c]
}

// shared is what something that lies on an offer has of the nodes of one of its pool, or of its
// own.
func shared(o, at *inventory.Offer, h *nodes.Holding) *nodes.Holding {
	if at == o {
		return h
	}
	only := h.Only(inventory.Shared)
	return &only
}
