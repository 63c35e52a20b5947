package sealed

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Whoever writes into a sealed world is noticed, with the place; who only decides
// about it is not.
func TestWorld_NoticesWritesInPlace(t *testing.T) {
	for want, write := range map[string]func(w *planner.World){
		"":                                        func(w *planner.World) { planner.Decide(*w) },
		"World.Offers[0].Flavor.Spec.Used[gpu]":   func(w *planner.World) { w.Offers[0].Flavor.Spec.Used["gpu"] = v1alpha1.AmountOf(3) },
		"World.Offers[0].State":                   func(w *planner.World) { w.Offers[0].State++ },
		"World.Fleet.Currency":                    func(w *planner.World) { w.Fleet.Currency = "USD" },
		"World.Intents[1].ResourceIntent":         func(w *planner.World) { w.Intents[1].Spec.Priority++ },
		"World.Intents[0]":                        func(w *planner.World) { w.Intents[0], w.Intents[1] = w.Intents[1], w.Intents[0] },
		"World.Clusters":                          func(w *planner.World) { delete(w.Clusters, "rome") },
		"World.Tenants[vision].Spec.Consumers[0]": func(w *planner.World) { w.Tenants["vision"].Spec.Consumers[0] = "oslo" },
		"Ledger[0].Status.Phase":                  func(w *planner.World) { first(w).Status.Phase = v1alpha1.PhaseActive },
		"Observed[0].ProviderHolds[gpu]": func(w *planner.World) {
			w.Observed.Of(first(w).Metadata.Name).ProviderHolds["gpu"] = v1alpha1.AmountOf(9)
		},
	} {
		b := plantest.New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Spec(func(f *v1alpha1.FlavorSpec) { f.Used = plantest.Amounts("gpu=1") })).
			Intent("vision/a", plantest.Wants(2)).Intent("vision/b", plantest.Wants(2))
		b.Round()
		b.Observe(first(&b.W).Metadata.Name, v1alpha1.Observation{ProviderSeen: true, ProviderHolds: plantest.Amounts("gpu=2")})
		changed := World(b.W)
		write(&b.W)
		got := changed()
		if want == "" && got != "" || want != "" && (len(got) < len(want) || got[:len(want)] != want) {
			t.Errorf("changed %q, want %q", got, want)
		}
	}
}

func first(w *planner.World) *v1alpha1.Contract {
	for c := range w.Ledger.Contracts() {
		return c
	}
	return nil
}
