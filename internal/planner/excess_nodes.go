package planner

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// excessOnNodes marks on each node that has too little of what the offer lacks contracts
// that lie there: those that the provider refuses first, since it knows whose pods run. It
// returns what is lacking still, and orders who is next: contracts with something on a node
// that is gone, then those of which nobody knows where something lies, then the rest.
func excessOnNodes(r *round, o *inventory.Offer, list []*v1alpha1.Contract, lack quantity.Vector, out map[string]bool) quantity.Vector {
	lacked, holds, gone := below(o.Free()), map[string]nodes.Holding{}, map[string]int{}
	for _, c := range list {
		h, name := draft.HoldingOf(&r.Draft, r.OfferOf(c), c.Metadata.Name, c), c.Metadata.Name
		if r.OfferOf(c) != o {
			h = h.Only(inventory.Shared)
		}
		holds[name] = h
		switch {
		case slices.ContainsFunc(h.Parts, func(p nodes.Part) bool { return !o.Nodes().Has(p.Node) }):
			gone[name] = 2
		case h.Loose != nil:
			gone[name] = 1
		}
	}
	onNode := slices.Clone(list)
	slices.SortStableFunc(onNode, func(a, b *v1alpha1.Contract) int { return cmp.Compare(refusedFirst(r, b), refusedFirst(r, a)) })
	o.Nodes().Below(func(node string, short quantity.Vector) {
		for i := range short {
			if lacked.At(i) <= 0 {
				short[i] = 0
			}
		}
		for _, marked := range [...]bool{true, false} {
			for _, c := range onNode {
				h, name := holds[c.Metadata.Name], c.Metadata.Name
				at := slices.IndexFunc(h.Parts, func(p nodes.Part) bool { return p.Node == node })
				if at < 0 || out[name] != marked || !c.Status.Phase.Held() || !h.Parts[at].Size.Relieves(short) {
					continue
				}
				if short = short.Sub(h.Parts[at].Size); !marked {
					out[name], lack = true, lack.Sub(r.Relief(o, c))
				}
			}
		}
	})
	slices.SortStableFunc(list, func(a, b *v1alpha1.Contract) int { return cmp.Compare(gone[b.Metadata.Name], gone[a.Metadata.Name]) })
	return lack
}

// refusedFirst is 1 for a contract that its provider refuses, else 0.
func refusedFirst(r *round, c *v1alpha1.Contract) int {
	if o := r.OfferOf(c); o != nil && o.Flavor.Spec.Refused[c.Metadata.Name] != "" {
		return 1
	}
	return 0
}

// below is how much less than nothing there is, nil where there is not.
func below(free quantity.Vector) (lack quantity.Vector) {
	for i, n := range free {
		if n < 0 {
			lack = lack.Set(i, -n)
		}
	}
	return lack
}
