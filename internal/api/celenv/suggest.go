package celenv

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
)

// nearestField is the field of any object that is closest to a misspelt one.
func nearestField(name string) string {
	known := map[string]bool{}
	for _, o := range objects {
		for f := range o.fields {
			known[f] = true
		}
	}
	return nearest.Of(name, slices.Sorted(maps.Keys(known)))
}
