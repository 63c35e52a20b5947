package providers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// drawn is a contract of a small world, in which mappings clash often.
func drawn(rng *rand.Rand, n int) *v1alpha1.Contract {
	phases := []v1alpha1.Phase{v1alpha1.PhaseActive, v1alpha1.PhaseActive, v1alpha1.PhaseReserved, v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased}
	tenant := fmt.Sprintf("t%d", rng.IntN(4))
	intent := fmt.Sprintf("i%d", n)
	return &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: tenant + "-" + intent + "-0-aaaa", Namespace: tenant},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: intent, Path: "intents/" + tenant + "/" + intent + ".yaml"}, Consumer: fmt.Sprintf("c%d", rng.IntN(3)), Provider: fmt.Sprintf("p%d", rng.IntN(6)), Flavor: "f",
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)},
			Term:      v1alpha1.Term{Start: v1alpha1.TimeOf(time.Date(2026, 1, 1, 0, 0, rng.IntN(1000), 0, time.UTC))},
			Offload:   &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: fmt.Sprintf("n%d", rng.IntN(5)), NamespaceMappingStrategy: "EnforceSameName"}}},
		},
		Status: v1alpha1.ContractStatus{Phase: phases[rng.IntN(len(phases))]},
	}
}

// What is kept is what going through all contracts gives, however ledgers and Cluster files
// follow each other.
func TestKnown_IsWhatAllContractsGive(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 42))
	led, _, err := ledger.Read(t.Context(), tree.NewMemory().Build(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	clusters := func(without string) *fleet.Fleet {
		f := &fleet.Fleet{Clusters: map[string]*v1alpha1.Cluster{}}
		for i := range 6 {
			f.Clusters[fmt.Sprintf("p%d", i)] = &v1alpha1.Cluster{}
			f.Clusters[fmt.Sprintf("c%d", i)] = &v1alpha1.Cluster{}
		}
		delete(f.Clusters, without)
		return f
	}
	f := clusters("")
	var known Known
	conflicts, missing, brought := 0, 0, 0
	for step := range 400 {
		known.Follow(led, f)
		want := manifests.RemoteConflicts(led.Contracts(), f.Clusters)
		if got := known.Conflicts(); !maps.Equal(got, want) {
			t.Fatalf("step %d: got %v, want %v", step, got, want)
		}
		conflicts += len(want)
		for i := range 3 {
			consumer := fmt.Sprintf("c%d", i)
			want := map[string]bool{}
			for _, c := range led.Consumer(consumer) {
				if manifests.Rendered(c) && c.Status.Phase != v1alpha1.PhaseReleasing && f.Clusters[c.Spec.Provider] == nil {
					want[c.Spec.Provider] = true
				}
			}
			if got := known.Undescribed(consumer); (got != "") != (len(want) > 0) || got != "" && !want[got] {
				t.Fatalf("step %d: %s lacks %q, want one of %v", step, consumer, got, want)
			}
			missing += len(want)
		}
		var changes ledger.Changes
		for range 1 + rng.IntN(3) {
			after := drawn(rng, rng.IntN(40))
			change := model.Change{Before: led.Contract(after.Metadata.Name), After: after}
			if change.Before != nil && rng.IntN(3) == 0 {
				change.After = nil
			}
			if at := changes.Contracts; len(at) > 0 && at[0].Last().Metadata.Name == after.Metadata.Name || len(at) > 1 && at[1].Last().Metadata.Name == after.Metadata.Name {
				continue
			}
			changes.Contracts = append(changes.Contracts, change)
		}
		next := led.With(changes)
		fresh := manifests.RemoteConflicts(next.Contracts(), f.Clusters)
		maps.DeleteFunc(fresh, func(at [2]string, _ string) bool { return want[at] != "" })
		if got := known.With(changes); !maps.Equal(got, fresh) {
			t.Fatalf("step %d: changes bring %v, want %v", step, got, fresh)
		}
		brought += len(fresh)
		if rng.IntN(4) > 0 { // else the changes are not made
			led = next
		}
		if rng.IntN(10) == 0 {
			f = clusters(fmt.Sprintf("p%d", rng.IntN(9)))
		}
	}
	if conflicts == 0 || missing == 0 || brought == 0 {
		t.Errorf("%d conflicts, %d providers without a file, %d conflicts that changes bring: nothing was tried", conflicts, missing, brought)
	}
}
