package formulate

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

func TestKept(t *testing.T) {
	here, there := &inventory.Offer{}, &inventory.Offer{}
	bounded := kept{2, map[*inventory.Offer]bool{here: true}}
	for name, c := range map[string]struct {
		kept  kept
		n     int
		offer *inventory.Offer
		want  bool
	}{
		"all":                          {kept{}, 1_000_000, there, true},
		"among the cheapest":           {bounded, 1, there, true},
		"after them":                   {bounded, 2, there, false},
		"after them, and somebody's":   {bounded, 2, here, true},
		"much later, and somebody's":   {bounded, 9, here, true},
		"nobody's of a kind like that": {kept{2, nil}, 2, here, false},
	} {
		if got := c.kept.has(c.n, c.offer); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
