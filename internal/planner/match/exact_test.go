package match

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// The terms of a score are always from 0 to 1, and never not a number.
func TestTermsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) quantity.Vector {
			return quantity.Vector{rapid.Int64Range(-10, 10).Draw(t, name), rapid.Int64Range(-10, 10).Draw(t, name), 0, 0, rapid.Int64Range(-10, 10).Draw(t, name)}
		}
		free, capacity, size := draw("free"), draw("capacity"), draw("size")
		for _, f := range []float64{
			resourceTerm(free, capacity, size, true), resourceTerm(free, capacity, size, false),
			costTerm(quantity.Micro(rapid.Int64().Draw(t, "price")), quantity.Micro(rapid.Int64Range(0, 5).Draw(t, "most")), false),
			latencyTerm(rapid.Int64().Draw(t, "ms"), true),
		} {
			if !(f >= 0 && f <= 1) {
				t.Fatal(f)
			}
		}
	})
}

func TestResourceTerm(t *testing.T) {
	capacity := quantity.Vector{100, 100, 0, 0, 10}
	for name, c := range map[string]struct {
		free, size quantity.Vector
		cards      bool
		want       float64
	}{
		"half of all is left":         {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{50, 50, 0, 0, 5}, true, 0.5},
		"cards without cores":         {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{100, 50, 0, 0, 5}, true, (0.5*0.5 + 0.25*0.5) * 0.5},
		"the last card":               {quantity.Vector{50, 50, 0, 0, 1}, quantity.Vector{0, 0, 0, 0, 1}, true, 0.25},
		"cores beside idle cards":     {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{50, 50}, false, 0.25},
		"cores where cards are gone":  {quantity.Vector{100, 100, 0, 0, 0}, quantity.Vector{50, 50}, false, 0.5},
		"more than there is (shrunk)": {quantity.Vector{-5, -5, 0, 0, -1}, quantity.Vector{1, 1}, false, 0},
	} {
		if got := resourceTerm(c.free, capacity, c.size, c.cards); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
