package planner_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// features makes every intent of a demand use what the language has: two
// replicas spread over regions, an alternative, several models, budgets of its
// own in addition to its tenant's quota and budget, labels, a latency, and for each of
// the 200 classes a condition of its own.
func features(tb testing.TB, b *Builder) *Builder {
	tb.Helper()
	for i := range b.W.Offers {
		o := b.W.Offers[i]
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
		in := b.W.Intents[i]
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
// in use: decisions a second on one core with the classes known, garbage of
// each, the slowest of a hundred, and what a class costs that is new. The scan
// looks at every flavor for an intent, by the same rules and without classes: the
// ratio is how many whole decisions fit into one.
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
			garbage := (p.Made - min(p.Kept, p.Made)) / intents
			b.ReportMetric(float64(garbage), "garbage-B/decision")
			if garbage > 4096 {
				b.Errorf("%d bytes of garbage a decision", garbage)
			}
			b.ReportMetric(float64(p.Made)/float64(intents), "alloc-B/decision")
			b.ReportMetric(float64(p.Percentile(0.50).Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(p.Percentile(0.99).Nanoseconds())/1000, "p99-µs")
			cold := p.Cold / time.Duration(p.Shapes)
			b.ReportMetric(float64(cold.Microseconds()), "cold-shape-µs")
			b.ReportMetric(float64((p.Settle+p.Conclude).Microseconds())/float64(intents), "rest-µs/decision")
			b.ReportMetric(float64(p.Scan.Microseconds()), "scan-µs")
			b.ReportMetric(float64(p.Scan)/float64(each), "scan-ratio")
			if placed := p.Plan.Summary()[planner.Place]; placed < intents*8/10 {
				b.Fatalf("%d of %d placed: %v", placed, intents, p.Plan.Summary())
			}
		})
	}
}

// BenchmarkRoundAfterOneChange is a round, planned from memory, after one thing
// has changed, with so many intents held on as many flavors: an intent was
// edited and one came, a flavor reports other use or another price, a contract
// is seen to work. The scratch is the same round planned from nothing.
func BenchmarkRoundAfterOneChange(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("held=%d", n), func(b *testing.B) {
			w := demand(market(n), n)
			for i := range w.W.Intents {
				w.W.Intents[i].Spec.Placement.Regions = nil
			}
			slices.SortFunc(w.W.Intents, func(x, y *model.Intent) int { // as the reader of a fleet gives them
				return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
			})
			w.Round()
			w.Deliver().Round()
			if held := w.W.Ledger.Held(); held < n*9/10 {
				b.Fatalf("%d of %d are held", held, n)
			}
			for _, change := range oneChanges {
				b.Run(change.name, func(b *testing.B) { roundAfter(b, w.W, change.next) })
			}
			runtime.KeepAlive(w)
		})
	}
}

var oneChanges = []struct {
	name string
	next func(b *Builder, n int) planner.Action
}{
	{"intent=new", func(b *Builder, n int) planner.Action {
		b.W.Intents = slices.Clone(b.W.Intents)
		in := model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("new%06d", n), Namespace: "t19"}}, Path: "new.yaml", Author: "a"}
		Wants(1, "H100")(&in)
		in.Digest = Digest(in.ResourceIntent)
		b.W.Intents = append(b.W.Intents, &in)
		return planner.Place
	}},
	{"intent=edited", func(b *Builder, n int) planner.Action {
		in := b.W.Intents[n%len(b.W.Intents)]
		b.Intent(in.Metadata.Namespace+"/"+in.Metadata.Name, With(func(s *v1alpha1.IntentSpec) {
			s.Resources.Named = s.Resources.Named.Clone()
			s.Resources.Named[v1alpha1.CPU] = s.Resources.Named[v1alpha1.CPU].Add(v1alpha1.AmountOf(1000))
		}))
		return planner.Resize
	}},
	{"flavor=used", func(b *Builder, n int) planner.Action {
		b.Offer(b.W.Offers[n%len(b.W.Offers)].Flavor.Ref(), Spec(func(f *v1alpha1.FlavorSpec) { f.Used = Amounts("cpu=1") }))
		return ""
	}},
	{"flavor=price", func(b *Builder, n int) planner.Action {
		b.Offer(b.W.Offers[n%len(b.W.Offers)].Flavor.Ref(), Costs("9"))
		return ""
	}},
	{"contract=phase", func(b *Builder, n int) planner.Action {
		in := b.W.Intents[n%len(b.W.Intents)]
		for _, c := range b.W.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			seen := Ready(c)
			seen.Consumer.NodeReady = false
			b.Observe(c.Metadata.Name, seen)
		}
		return ""
	}},
}

// roundAfter measures rounds, each after one change to a world that is else as
// it was.
func roundAfter(b *testing.B, w planner.World, change func(*Builder, int) planner.Action) {
	b.Helper()
	m := &planner.Session{}
	m.Decide(w)
	live := &Builder{W: w}
	b.ReportAllocs()
	n := 0
	var spent, scratch time.Duration
	for b.Loop() {
		b.StopTimer()
		n++
		want := change(live, n)
		start := cpuTime(b)
		b.StartTimer()
		p := m.Decide(live.W)
		b.StopTimer()
		spent += cpuTime(b) - start
		if made := p.Summary()[want]; want != "" && made == 0 {
			b.Fatalf("%v", p.Summary())
		}
		live.Apply(p)
		m.Decide(live.W)
		b.StartTimer()
	}
	if s := m.Scratch(); s != 1 {
		b.Fatalf("%d rounds were planned from nothing", s)
	}
	start := cpuTime(b)
	planner.Decide(live.W)
	scratch = cpuTime(b) - start
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(n), "cpu-ms/round")
	b.ReportMetric(float64(scratch)/float64(max(spent/time.Duration(n), 1)), "scratch-ratio")
	b.ReportMetric(float64(mem.HeapAlloc)/(1<<20), "MiB-live")
	runtime.KeepAlive(m)
}

// BenchmarkQueue is what waiting costs with the length of the queue: every card of
// as many flavors is held for a known term, so that whoever waits may have a
// reservation. first plans the queue when it comes; the others are rounds
// after one change, planned from memory: a flavor's use is another one, or one
// more intent comes.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			w := queueOf(b, n)
			b.Run("first", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if p := planner.Decide(w.W); p.Summary()[planner.Queued] != n {
						b.Fatal(p.Summary())
					}
				}
			})
			w.Round()
			for _, change := range queueChanges {
				b.Run(change.name, func(b *testing.B) { roundAfter(b, w.W, change.next) })
			}
		})
	}
}

// queueOf is n intents in 200 classes that come to n flavors, the cards of which
// others hold for two hours and more.
func queueOf(tb testing.TB, n int) *Builder {
	tb.Helper()
	w := demand(market(n), n)
	wait := w.W.Intents
	w.Tenant("holder", "home")
	w.W.Intents = make([]*model.Intent, 0, n)
	for i, o := range w.W.Offers {
		in := model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("h%06d", i), Namespace: "holder"}}, Path: fmt.Sprintf("h%06d.yaml", i), Author: "a"}
		Wants(int32(o.Flavor.Spec.Capacity[v1alpha1.GPU].Int64()), o.Flavor.Spec.GPU.Model)(&in)
		in.Spec.Placement.Regions = []string{o.Location.Region}
		For(2*time.Hour + time.Duration(i%1000)*time.Minute)(&in)
		in.Digest = Digest(in.ResourceIntent)
		w.W.Intents = append(w.W.Intents, &in)
	}
	w.Round()
	w.Deliver().Round()
	if held := w.W.Ledger.Held(); held != n {
		tb.Fatalf("%d of %d flavors are held", held, n)
	}
	w.Tick(time.Minute)
	slices.SortStableFunc(wait, func(x, y *model.Intent) int { // as the reader of a fleet gives them
		return cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace)
	})
	w.W.Intents = slices.Concat(w.W.Intents, wait)
	return w
}

var queueChanges = []struct {
	name string
	next func(b *Builder, n int) planner.Action
}{
	{"flavor=used", func(b *Builder, n int) planner.Action {
		b.Offer(b.W.Offers[n%len(b.W.Offers)].Flavor.Ref(), Spec(func(f *v1alpha1.FlavorSpec) { f.Used = Amounts("cpu=1") }))
		return planner.Queued
	}},
	{"intent=new", func(b *Builder, n int) planner.Action {
		b.Intent(fmt.Sprintf("t19/new%06d", n), Wants(4, "H100"))
		return planner.Queued
	}},
}
