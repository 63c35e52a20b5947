package market_test

import (
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Equal prices are one value, whoever reports them and whenever; however many
// come, only so many are remembered.
func TestEqualPricesAreOne(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	m.SetInputs(market.Inputs{Key: "0", Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider"), "rome": cluster("rome", "provider")}})
	priced := func(provider, name, price string) v1alpha1.Flavor {
		f := gpus(provider, name, 8)
		f.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": dec(price), "cpu": dec("0.02")}}
		return f
	}
	of := func(provider, name string) *v1alpha1.Price { return m.Snapshot().Offer(provider, name).Price }
	report(t, m, "paris", gen(1, 1), priced("paris", "a", "2"), priced("paris", "b", "2"), priced("paris", "c", "3"))
	report(t, m, "rome", gen(1, 1), priced("rome", "a", "2"))
	two, three := of("paris", "a"), of("paris", "c")
	if of("paris", "b") != two || of("rome", "a") != two || three == two {
		t.Error("equal prices are several values, or different ones the same")
	}
	report(t, m, "rome", gen(1, 2), priced("rome", "a", "3"))
	if of("rome", "a") != three {
		t.Error("a price that changed to one that is known is a new value")
	}

	for n := range 7 {
		list := make([]v1alpha1.Flavor, 2000)
		for i := range list {
			list[i] = priced("rome", fmt.Sprintf("f%d", i), fmt.Sprintf("%d.%04d", 5+n, i))
		}
		report(t, m, "rome", gen(1, uint64(3+n)), list...)
	}
	if n := m.Prices(); n == 0 || n > market.KeptPrices {
		t.Errorf("%d prices are remembered, at most %d should be", n, market.KeptPrices)
	}
	if of("paris", "a") != two || of("rome", "f7").PerHour["gpu"].String() != "11.0007" {
		t.Error("prices that were forgotten are not what their offers cost any more")
	}
}
