package bench

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// BenchmarkAdverts reports 10,000 flavors anew, all with other use, by 100
// providers, while round after round is planned on the market as it is: each
// from memory, with 10,000 contracts held.
func BenchmarkAdverts(b *testing.B) {
	o := gen.Options{Tenants: 20, Intents: 500, Held: 500, Providers: 100, Flavors: 100, Consumers: 4, Delivery: "none", Now: made}
	read, err := fleet.NewReader().Read(b.Context(), tree.NewMemory().Build(o.Inputs()), nil)
	if err != nil {
		b.Fatal(err)
	}
	m := gen.Market(read, made)
	reports := map[string][]v1alpha1.Flavor{}
	for _, f := range read.Flavors {
		reports[f.Metadata.Namespace] = append(reports[f.Metadata.Namespace], *f)
	}
	in := world.Input{Now: v1alpha1.TimeOf(made), Fleet: read, Inputs: "0", Ledger: ledger.Empty()}
	memory := &planner.Session{}
	round := func() *planner.Plan {
		in.Market = m.Snapshot()
		return memory.Decide(world.Build(in))
	}
	in.Ledger = in.Ledger.With(round().LedgerChanges())
	if n := in.Ledger.Held(); n != 10_000 {
		b.Fatalf("%d contracts are held", n)
	}
	n := uint64(0)
	for b.Loop() {
		stop, stopped := make(chan bool), make(chan int)
		go func() {
			for rounds := 0; ; rounds++ {
				select {
				case <-stop:
					stopped <- rounds
					return
				default:
					round()
				}
			}
		}()
		n++
		begin := time.Now()
		for provider, list := range reports {
			for i := range list {
				list[i].Spec.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(int64(n%7) * 1000)}
			}
			if err := m.Report(provider, wire.Generation{Epoch: 1, N: n}, list, true); err != nil {
				b.Fatal(err)
			}
		}
		took := time.Since(begin)
		close(stop)
		rounds := <-stopped
		results.below("10,000 adverts into the market while rounds are planned", took.Seconds(), 1, "s")
		b.ReportMetric(10_000/took.Seconds(), "adverts/s")
		b.ReportMetric(float64(rounds), "rounds-meanwhile")
	}
	if got, want := len(m.Snapshot().Offers()), 10_000; got != want {
		b.Fatalf("%d offers, want %d", got, want)
	}
}
