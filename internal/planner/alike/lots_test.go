package alike_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/alike"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// TestLots_DifferByWhatDecidesPrices: offers of a lot have all in common by which a request
// is measured and priced, and an offer that is described otherwise is in another.
func TestLots_DifferByWhatDecidesPrices(t *testing.T) {
	cheap, flat := &v1alpha1.Price{}, &v1alpha1.Price{Flat: &v1alpha1.Decimal{}}
	// made is the i-th offer, of a region and with so many cores.
	made := func(i int, price *v1alpha1.Price, region string, cores int64, more func(*inventory.Offer)) *inventory.Offer {
		o := &inventory.Offer{Index: i, UnitsPerCard: 1, Capacity: quantity.Vector{0, cores}, Offer: &model.Offer{Flavor: &v1alpha1.Flavor{}, Price: price, Location: v1alpha1.Location{Region: region}}}
		if more != nil {
			more(o)
		}
		return o
	}
	stepped := func(o *inventory.Offer) { o.Step = quantity.Vector{0, 2} }
	grows := func(o *inventory.Offer) {
		o.Flavor.Spec.ScalableTo = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(9)}
	}
	shared := func(o *inventory.Offer) { o.UnitsPerCard = 7 }
	for _, c := range []struct {
		name           string
		a, b           *inventory.Offer
		same, regional bool // one lot, also by regions
	}{
		{"equal", made(0, cheap, "a", 4, nil), made(1, cheap, "a", 4, nil), true, true},
		{"regions", made(0, cheap, "a", 4, nil), made(1, cheap, "b", 4, nil), true, false},
		{"prices", made(0, cheap, "a", 4, nil), made(1, &v1alpha1.Price{}, "a", 4, nil), false, false},
		{"sizes", made(0, cheap, "a", 4, nil), made(1, cheap, "a", 5, nil), false, false},
		{"parts of cards", made(0, cheap, "a", 4, nil), made(1, cheap, "a", 4, shared), false, false},
		{"steps", made(0, cheap, "a", 4, stepped), made(1, cheap, "a", 4, stepped), false, false},
		{"growth", made(0, cheap, "a", 4, grows), made(1, cheap, "a", 4, grows), false, false},
		{"flat prices", made(0, flat, "a", 4, nil), made(1, flat, "a", 4, nil), false, false},
	} {
		offers := []*inventory.Offer{c.a, c.b}
		for regions, want := range map[bool]bool{false: c.same, true: c.regional} {
			l := alike.NewLots(len(offers), regions)
			of, last := l.Of(offers)
			if of[0] < 1 || of[1] > last || of[0] == of[1] != want {
				t.Errorf("%s, regions %t: got lots %v of %d", c.name, regions, of, last)
			}
			c.b.UnitsPerCard += 20
			l.Describe(c.b)
			if of, _ := l.Of(offers); of[0] == of[1] {
				t.Errorf("%s: another offer is in the same lot", c.name)
			}
			c.b.UnitsPerCard -= 20
		}
	}
}
