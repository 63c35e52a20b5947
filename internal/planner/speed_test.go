package planner_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// features makes every intent of a demand use what the language has: two
// replicas spread over regions, an alternative, several models, budgets of its
// own beside its tenant's quota and budget, labels, a latency, and for each of
// the 200 shapes a condition of its own.
func features(tb testing.TB, b *Builder) *Builder {
	tb.Helper()
	for i := range b.W.Offers {
		o := &b.W.Offers[i]
		o.Flavor.Spec.Labels = map[string]string{"compliance": "gdpr"}
		ms := int64(i % 40)
		o.Flavor.Spec.Properties.LatencyMs = &ms
	}
	for _, t := range b.W.Tenants {
		t.Spec.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(1_000_000))}
		t.Spec.Budget = &v1alpha1.TenantBudget{Hourly: Money("100000000"), Currency: "EUR"}
	}
	where := map[int]*celenv.Program{}
	for shape := range 200 {
		p, err := celenv.Compile(fmt.Sprintf(`flavor.price.hourly < %d.0 && flavor.gpu.memory.compareTo(quantity("%dGi")) >= 0`, 1000+shape, 10+shape%60))
		if err != nil {
			tb.Fatal(err)
		}
		where[shape] = p
	}
	for i := range b.W.Intents {
		in := &b.W.Intents[i]
		shape := i % 200
		Times(2)(in)
		AtMost("900")(in)
		in.Where = where[shape]
		s := &in.Spec
		s.Placement.Where = where[shape].Source()
		s.Placement.Regions = nil
		s.Placement.Labels = map[string]string{"compliance": "gdpr"}
		s.Placement.MaxLatency.Duration = 200 * time.Millisecond
		s.Placement.Spread = v1alpha1.SpreadList{{By: "region", MaxSkew: 1}}
		s.Resources.GPU = &v1alpha1.GPURequest{Count: 1, Models: []string{benchModels[shape%len(benchModels)], benchModels[(shape+1)%len(benchModels)]}}
		s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 2, Models: benchModels[:1]}}}
		in.Digest = Digest(in.ResourceIntent)
	}
	return b
}

// BenchmarkDecisions is the growth of a decision with the market, every feature
// in use: decisions a second on one core with the shapes known, garbage of
// each, the slowest of a hundred, and what a shape costs that is new. The scan
// is what looking at every flavor for every intent would take, in place of the
// shapes: the ratio is that of a whole decision to it.
func BenchmarkDecisions(b *testing.B) {
	for _, n := range []int{1000, 3000, 10_000} {
		b.Run(fmt.Sprintf("flavors=%d", n), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			const intents = 2000
			w := features(b, demand(market(n), intents)).W
			var p *planner.Pace
			for b.Loop() {
				p = planner.MeasurePace(w)
			}
			var sum time.Duration
			for _, t := range p.Turns {
				sum += t
			}
			each := sum / time.Duration(len(p.Turns))
			b.ReportMetric(float64(time.Second)/float64(each), "decisions/s")
			b.ReportMetric(float64(p.Made-min(p.Kept, p.Made))/float64(intents), "garbage-B/decision")
			b.ReportMetric(float64(p.Made)/float64(intents), "alloc-B/decision")
			b.ReportMetric(float64(p.Percentile(0.50).Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(p.Percentile(0.99).Nanoseconds())/1000, "p99-µs")
			cold := p.Cold / time.Duration(p.Shapes)
			b.ReportMetric(float64(cold.Microseconds()), "cold-shape-µs")
			b.ReportMetric(float64((p.Settle+p.Conclude).Microseconds())/float64(intents), "rest-µs/decision")
			b.ReportMetric(float64(cold)/float64(each), "scan-ratio")
			if placed := p.Plan.Summary()[planner.Place]; placed < intents*8/10 {
				b.Fatalf("%d of %d placed: %v", placed, intents, p.Plan.Summary())
			}
		})
	}
}

// BenchmarkRoundAfterOneChange is a round in which one intent is new, with so
// many intents held on as many flavors.
func BenchmarkRoundAfterOneChange(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("held=%d", n), func(b *testing.B) {
			w := demand(market(n), n)
			for i := range w.W.Intents {
				w.W.Intents[i].Spec.Placement.Regions = nil
			}
			w.Round()
			w.Deliver().Round()
			held := w.W.Ledger.Held()
			if held < n*9/10 {
				b.Fatalf("%d of %d are held", held, n)
			}
			w.Intent("t00/new", Wants(1, "H100"))
			b.ReportAllocs()
			used := reportCPU(b)
			for b.Loop() {
				if p := planner.Decide(w.W); p.Summary()[planner.Place] != 1 {
					b.Fatal(p.Summary())
				}
			}
			used()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
			runtime.KeepAlive(w)
		})
	}
}
