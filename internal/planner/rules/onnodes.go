package rules

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// domainOfNodes is the domain by a label of nodes in which all of a contract's are, "" where
// they are in several, or in none.
func domainOfNodes(o *inventory.Offer, c *v1alpha1.Contract, label string) string {
	at := ""
	for i := range c.Spec.Nodes {
		place := o.PlaceOf(label, c.Spec.Nodes[i].Node)
		if place == "" || at != "" && place != at {
			return ""
		}
		at = place
	}
	if at == "" {
		return ""
	}
	return o.Provider + "/" + at
}
