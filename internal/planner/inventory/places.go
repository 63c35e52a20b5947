package inventory

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// A label of topology, such as that of a rack, is of single nodes where those of a flavor
// differ in it. Then the flavor lies in several places, each with some of its nodes.

// Places are the values of a label that nodes of the offer bear, in order; none where it
// tells no nodes, or its nodes do not differ in the label.
func (o *Offer) Places(label string) []string {
	seen := map[string]bool{}
	for _, value := range o.placesBy(label) {
		seen[value] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// HasPlaces reports whether there are any.
func (o *Offer) HasPlaces(label string) bool { return len(o.placesBy(label)) > 0 }

// PlaceOf is the value of a label that a node of the offer bears, "" for none.
func (o *Offer) PlaceOf(label, node string) string { return o.placesBy(label)[node] }

// placesBy are the values of a label, by node.
func (o *Offer) placesBy(label string) map[string]string {
	if !o.tellsPlaces || label == "" {
		return nil
	}
	by, known := o.places[label]
	if known {
		return by
	}
	for _, n := range ledger.NodesOf(o.Flavor) {
		if value := n.Labels[label]; value != "" {
			if by == nil {
				by = map[string]string{}
			}
			by[n.Name] = value
		}
	}
	if o.places == nil {
		o.places = map[string]map[string]string{}
	}
	o.places[label] = by
	return by
}
