package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func at(s string) v1alpha1.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return v1alpha1.TimeOf(t)
}

func dec(s string) v1alpha1.Decimal { return v1alpha1.MustDecimal(s) }

func amounts(pairs ...any) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		a, err := v1alpha1.ParseAmount(name, pairs[i+1].(string))
		if err != nil {
			panic(err)
		}
		out[name] = a
	}
	return out
}

// contract is one of vision/llm on paris/h100-pool with every field that is
// usually there.
func contract(tenant, intent string, replica, ordinal int32) *v1alpha1.Contract {
	first := v1alpha1.FirstSeen{Commit: "4f1c2ab04f1c2ab04f1c2ab04f1c2ab04f1c2ab0"}
	name := ledger.ContractName(tenant, intent, first, replica, 0, ordinal)
	return &v1alpha1.Contract{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindContract},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{
				Name: intent, Path: "intents/" + tenant + "/" + intent + ".yaml", Commit: first.Commit,
				Author: "Ada L. <ada@example.org>", Digest: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
				Replica: replica, Ordinal: ordinal,
			},
			Consumer: "rome", Provider: "paris", Flavor: "h100-pool", Slice: name, Class: "fleetbroker",
			Resources: amounts("cpu", "16", "memory", "128Gi", "pods", "50", "ephemeral-storage", "200Gi", "nvidia.com/gpu", "4"),
			GPUs:      &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(80 << 30)}, ResourceName: "nvidia.com/gpu", UnitsPerGPU: 1},
			Price:     v1alpha1.ContractPrice{Hourly: dec("12.0944"), List: dec("14"), Currency: "EUR", Class: v1alpha1.OnDemand},
			Term:      v1alpha1.Term{Start: at("2026-11-20T08:00:00Z")},
			Offload:   &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: tenant, Create: true}}},
		},
		Decision: v1alpha1.Decision{
			Score: 0.87, Scores: map[string]float64{"resources": 0.61, "cost": 0.26}, Market: "9d1e03a09d1e03a09d1e03a09d1e03a09d1e03a0",
			Offer: v1alpha1.OfferFigures{
				Capacity: amounts("cpu", "256", "memory", "2Ti", "pods", "440", "gpu", "16"),
				Used:     amounts("cpu", "12", "memory", "64Gi", "pods", "31", "gpu", "2"),
				Held:     amounts("cpu", "16", "memory", "128Gi", "pods", "50", "gpu", "4"),
			},
			Considered: 37, Rejected: map[string]int{"gpu.model": 21, "budget.maxHourly": 4},
			RunnersUp: []v1alpha1.RunnerUp{{Flavor: "berlin/a100", Score: 0.81, Hourly: dec("13.39")}},
		},
		Status: v1alpha1.ContractStatus{
			Phase: v1alpha1.PhaseActive, Since: at("2026-11-20T08:00:05Z"), AccruedAt: at("2026-11-20T08:00:00Z"),
			History: []v1alpha1.PhaseChange{{Phase: v1alpha1.PhaseReserved, At: at("2026-11-20T08:00:00Z")}, {Phase: v1alpha1.PhaseActive, At: at("2026-11-20T08:00:05Z")}},
		},
	}
}

func state(tenant, intent string) *v1alpha1.IntentState {
	return &v1alpha1.IntentState{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindIntentState},
		Metadata: v1alpha1.Metadata{Name: intent, Namespace: tenant},
		Status: v1alpha1.IntentStatus{
			Path: "intents/" + tenant + "/" + intent + ".yaml", Digest: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			FirstSeen: v1alpha1.FirstSeen{Commit: "4f1c2ab04f1c2ab04f1c2ab04f1c2ab04f1c2ab0", Author: "Ada L. <ada@example.org>", At: at("2026-11-20T08:00:00Z")},
			State:     v1alpha1.IntentQueued, Since: at("2026-11-20T08:00:00Z"), Reason: "NothingFits",
			Message: "none of 37 offers fits: 21 have another GPU model, 12 have too few GPUs free, 4 cost more than budget.maxHourly", NextOrdinals: map[string]int32{"0.0": 1},
		},
	}
}

// big is the files of a fleet of so many tenants and intents each, of which
// every n-th has a contract.
func big(tb testing.TB, tenants, intents, every int) map[string][]byte {
	tb.Helper()
	var ch ledger.Changes
	for i := range tenants {
		tenant := fmt.Sprintf("team-%03d", i)
		for j := range intents {
			intent := fmt.Sprintf("job-%05d", j)
			ch.States = append(ch.States, model.StateChange{After: state(tenant, intent)})
			if j%every == 0 {
				ch.Contracts = append(ch.Contracts, model.Change{After: contract(tenant, intent, 0, 0)})
			}
		}
	}
	puts, _, err := ch.Files()
	if err != nil {
		tb.Fatal(err)
	}
	return puts
}

// files writes changes into a tree on top of files that were there.
func files(tb testing.TB, base map[string][]byte, ch ledger.Changes) map[string][]byte {
	tb.Helper()
	puts, deletes, err := ch.Files()
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string][]byte{}
	for name, b := range base {
		out[name] = b
	}
	for _, name := range deletes {
		delete(out, name)
	}
	for name, b := range puts {
		out[name] = b
	}
	return out
}

func build(f map[string][]byte) tree.Tree { return tree.NewMemory().Build(f) }
