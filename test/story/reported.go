package story

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Reported is a fleet whose only offer an agent reports, paris/pool: sixteen H100 at
// 2.50 EUR each. The agent is heard before each round.
func Reported(t T, branch string) *Story {
	t.Helper()
	s := New(t, branch, nil, "")
	s.Push("An agent reports", nil, "flavors/paris/h100.yaml")
	f := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "pool", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{
		Type: "K8Slice", Architecture: "amd64", Class: "fleetbroker",
		Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(256_000), v1alpha1.Memory: v1alpha1.AmountOf(2 << 40), v1alpha1.GPU: v1alpha1.AmountOf(16)},
		GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(80 << 30)}, ResourceName: "nvidia.com/gpu", UnitsPerGPU: 1},
		Price:    &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("2.50")}},
	}}
	n := uint64(0)
	s.beat = func() {
		n++
		if err := s.market.Report("paris", wire.Generation{Epoch: 1, N: n}, []v1alpha1.Flavor{f}, true); err != nil {
			t.Fatal(err)
		}
	}
	s.Rest()
	return s
}
