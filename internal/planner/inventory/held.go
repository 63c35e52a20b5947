package inventory

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Footprint is, as a Vector of its own, what a contract takes of an offer by what it
// was sold and what the provider reports under it: the larger of both. One that has
// ended, or none, takes what is still reported under its name.
func (in *Inventory) Footprint(o *Offer, name string, c *v1alpha1.Contract) quantity.Vector {
	n := in.facts.Names
	reported, lingers := o.Flavor.Spec.Held[name]
	if c != nil && !lingers && c.Spec.Slice != name {
		reported, lingers = o.Flavor.Spec.Held[c.Spec.Slice]
	}
	if c == nil || !c.Status.Phase.Held() {
		if !lingers {
			return nil
		}
		return n.VectorOf(reported)
	}
	takes := Sold(n, c, o.Flavor)
	if lingers {
		takes = takes.Max(n.VectorOf(reported))
	}
	return takes
}
