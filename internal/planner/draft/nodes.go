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
	for _, c := range r.ContractsOn(o) {
		at, name := r.OfferOf(c), c.Metadata.Name
		if at == nil {
			continue
		}
		shared := func(h nodes.Holding) *nodes.Holding {
			if at != o {
				h = h.Only(inventory.Shared)
			}
			return &h
		}
		switch {
		case c.Status.Phase == v1alpha1.PhaseBooked:
			if !except[name] && c.Spec.Term.End.After(from.Time) && (to.IsZero() || c.Spec.Term.Start.Before(to.Time)) {
				held := *c
				held.Status.Phase = v1alpha1.PhaseReserved
				m.Book(shared(r.Inventory.Holding(at, name, &held, inventory.Sold(r.Names, c, at.Flavor))), 1)
			}
		case !c.Status.Phase.Held() || r.lent[name]:
		case except[name]:
			m.Book(shared(HoldingOf(r.Draft, at, name, c)), -1)
		default:
			if end := r.freeAt(c); from.After(r.Now.Time) && !end.IsZero() && !end.After(from.Time) {
				m.Book(shared(HoldingOf(r.Draft, at, name, c)), -1)
			}
		}
	}
	return m
}
