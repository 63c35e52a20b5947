package planner_test

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

var benchModels = []string{"nvidia-h100", "nvidia-h200", "nvidia-a100", "nvidia-l40s", "nvidia-l4", "nvidia-t4", "nvidia-v100", "amd-mi300x"}

// market is n flavors of 100 providers in ten regions.
func market(n int) *Builder {
	b := New().Consumer("home").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work, f.Limits.Contracts = 1<<40, 1<<40 }) // the planner is measured, not what a round or a tenant may cost
	for i := range 100 {
		b.Provider(fmt.Sprintf("p%02d", i))
	}
	b.W.Offers = make([]*model.Offer, 0, n)
	for i := range n {
		o := model.Offer{
			Flavor: &v1alpha1.Flavor{
				Metadata: v1alpha1.Metadata{Namespace: fmt.Sprintf("p%02d", i%100), Name: fmt.Sprintf("f%05d", i)},
				Spec:     v1alpha1.FlavorSpec{Architecture: "amd64", Capacity: Amounts("cpu=256 memory=2Ti pods=440")},
			},
			Location: v1alpha1.Location{Region: fmt.Sprintf("r%d", i%10)},
		}
		Cards(benchModels[i%len(benchModels)], 8+i%3*4, "80Gi")(&o)
		Costs(fmt.Sprintf("%d.%02d", 1+i%7, i%97), "cpu=0.021 memoryGi=0.0028")(&o)
		b.W.Offers = append(b.W.Offers, &o)
	}
	return b
}

// demand is n intents of 20 tenants in 200 classes.
func demand(b *Builder, n int) *Builder {
	for i := range 20 {
		b.Tenant(fmt.Sprintf("t%02d", i), "home")
	}
	b.W.Intents = make([]*model.Intent, 0, n)
	for i := range n {
		shape := i % 200
		name := fmt.Sprintf("i%06d", i)
		in := model.Intent{
			ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: name, Namespace: fmt.Sprintf("t%02d", shape%20)}},
			Path:           "intents/" + name + ".yaml", Commit: "c1", Author: "a",
		}
		Wants(int32(1+shape%4), benchModels[shape%len(benchModels)])(&in)
		in.Spec.Placement.Regions = []string{fmt.Sprintf("r%d", shape%10), fmt.Sprintf("r%d", (shape+3)%10)}
		if shape%3 == 0 {
			AtMost("40")(&in)
		}
		in.Spec.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(int64(4000 + shape*10))
		in.Digest = Digest(in.ResourceIntent)
		b.W.Intents = append(b.W.Intents, &in)
	}
	return b
}

// reportCPU reports the processor's time next to the clock's, garbage collection
// included: the machine may be busy with other things.
func reportCPU(b *testing.B) func() {
	b.Helper()
	start := cpuTime(b)
	return func() { b.ReportMetric(float64((cpuTime(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op") }
}

// cpuTime is the processor's time that this process has had.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Planning 10,000 new intents against 10,000 flavors: under two seconds.
func BenchmarkPlan10kx10k(b *testing.B) {
	w := demand(market(10_000), 10_000).W
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		p := planner.Decide(w)
		if n := p.Summary()[planner.Place]; n < 9000 {
			b.Fatalf("placed %d: %v", n, p.Summary())
		}
	}
}

// Ten thousand intents that nothing fits, in 200 classes: what waiting costs.
func BenchmarkWait10kx10k(b *testing.B) {
	w := demand(market(10_000), 10_000)
	for i := range w.W.Intents {
		w.W.Intents[i].Spec.Resources.GPU.Count = 50
	}
	w.Round()
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if p := planner.Decide(w.W); p.Changes() || p.Summary()[planner.Queued] != 10_000 {
			b.Fatal(p.Summary())
		}
	}
}

// A round in which nothing happened, with 100,000 intents of which 10,000 hold
// a contract and the others are done.
func BenchmarkKeepRound(b *testing.B) {
	w := demand(market(10_000), 10_000)
	w.Round()
	w.Deliver().Round()
	var ch ledger.Changes
	for i := range 90_000 {
		name := fmt.Sprintf("done%06d", i)
		tenant := fmt.Sprintf("t%02d", i%20)
		in := model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant}}, Path: "intents/" + name + ".yaml", Digest: "d"}
		Wants(1, "H100")(&in)
		w.W.Intents = append(w.W.Intents, &in)
		ch.States = append(ch.States, model.StateChange{After: &v1alpha1.IntentState{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindIntentState},
			Metadata: in.Metadata, Status: v1alpha1.IntentStatus{Path: in.Path, Digest: "d", State: v1alpha1.IntentDone, Reason: lifecycle.CodeTermEnded},
		}})
	}
	w.W.Ledger = w.W.Ledger.With(ch)
	// The reader of a fleet gives them in order.
	slices.SortFunc(w.W.Intents, func(x, y *model.Intent) int {
		return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
	})
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if p := planner.Decide(w.W); p.Changes() {
			b.Fatal(len(p.Contracts), len(p.States), p.Summary())
		}
	}
}
