package inventory

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// HeldByPeers is what the other flavors of its pool take of what they share.
func (o *Offer) HeldByPeers() quantity.Vector { return o.pool }
