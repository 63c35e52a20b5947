package heard

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// A daemon whose newest report of a provider is older than a contract counts what
// the contract had after another daemon made it smaller, in the flavor's names;
// one that grew, ended or begins lends nothing.
func TestSmallerIsStillHeld(t *testing.T) {
	m := market.New(market.Options{Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }})
	flavor := v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"},
		Spec: v1alpha1.FlavorSpec{
			Architecture: "amd64", Capacity: v1alpha1.Resources{"cpu": v1alpha1.AmountOf(64_000), "gpu": v1alpha1.AmountOf(8)},
			GPU: &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(80 << 30)}, UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"},
		},
	}
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, []v1alpha1.Flavor{flavor}, true); err != nil {
		t.Fatal(err)
	}
	contract := func(name string, phase v1alpha1.Phase, gpus, cpu int64) *v1alpha1.Contract {
		return &v1alpha1.Contract{
			Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"},
			Spec: v1alpha1.ContractSpec{
				Provider: "paris", Flavor: "h100", Slice: "slice-of-" + name,
				Resources: v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(gpus), "cpu": v1alpha1.AmountOf(cpu)},
			},
			Status: v1alpha1.ContractStatus{Phase: phase},
		}
	}
	active := v1alpha1.PhaseActive
	var changes []model.Change
	for _, c := range []*v1alpha1.Contract{contract("shrunk", active, 4, 1000), contract("grown", active, 1, 1000), contract("ended", active, 2, 1000), contract("gone", active, 2, 1000)} {
		changes = append(changes, model.Change{Before: c})
	}
	for _, c := range []*v1alpha1.Contract{contract("shrunk", active, 2, 3000), contract("grown", active, 2, 1000), contract("ended", v1alpha1.PhaseReleased, 1, 1000), contract("begun", active, 1, 1000)} {
		changes = append(changes, model.Change{After: c})
	}
	StillHeld(m, changes)
	held := m.Snapshot().Offer("paris", "h100").Flavor.Spec.Held
	if want := (v1alpha1.Resources{"gpu": v1alpha1.AmountOf(4), "cpu": v1alpha1.AmountOf(1000)}); len(held) != 1 || !held["slice-of-shrunk"].Equal(want) {
		t.Errorf("held: %v", held)
	}
}
