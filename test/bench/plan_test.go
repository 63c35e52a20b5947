package bench

import (
	"runtime"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// BenchmarkPlan plans 10,000 new intents of 20 tenants against 10,000 flavors
// on one core, from a fleet as the reader reads it.
func BenchmarkPlan(b *testing.B) {
	o := gen.Options{Tenants: 20, Intents: 500, Held: 500, Providers: 100, Flavors: 100, Consumers: 4, Delivery: "none", Now: made}
	read, err := fleet.NewReader().Read(b.Context(), tree.NewMemory().Build(o.Inputs()), nil)
	if err != nil {
		b.Fatal(err)
	}
	w := world.Build(world.Input{Now: v1alpha1.TimeOf(made), Fleet: read, Inputs: "0", Ledger: ledger.Empty(), Market: gen.Market(read, made).Snapshot()})
	if len(w.Offers) != 10_000 || len(w.Intents) != 10_000 {
		b.Fatalf("%d offers, %d intents", len(w.Offers), len(w.Intents))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for b.Loop() {
		var took, used []time.Duration
		for range 5 {
			runtime.GC()
			cpu, begin := cpuTime(b), time.Now()
			plan := planner.Decide(w)
			took, used = append(took, time.Since(begin)), append(used, cpuTime(b)-cpu)
			if n := plan.Summary()[planner.Place]; n != 10_000 {
				b.Fatalf("placed %d: %v", n, plan.Summary())
			}
		}
		results.below("planning 10,000 intents against 10,000 flavors, GOMAXPROCS=1", median(took).Seconds(), 2, "s")
		results.below("the same, processor time", median(used).Seconds(), 2, "s")
	}
}
