package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Scaled is what of a size an offer has yet to add, without what a contract that
// goes has of it; nil for nothing.
func (r *Placer) Scaled(o *inventory.Offer, size, had quantity.Vector) v1alpha1.Resources {
	more := o.Unbuilt(size, had)
	if more == nil {
		return nil
	}
	return r.Names.Resources(more)
}
