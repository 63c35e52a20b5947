package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/verify"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// scale is a daemon that knows a large fleet at rest: every intent holds a
// contract that works, every flavor is reported by an agent. It plans and
// writes nothing (shadow): what a push takes is measured in test/bench.
type scale struct {
	b       *testing.B
	r       *Reconciler
	at      time.Time
	market  *market.Market
	newest  map[string]wire.Generation
	n       uint64
	names   []string // of providers
	seen    *spoken
	commits int
}

// spoken is a Delivery that says what it was told to say.
type spoken struct {
	said       v1alpha1.ConsumerObservations
	generation uint64
}

func (*spoken) Deliver(map[string]delivery.Desired) {}

func (w *spoken) Observe() (v1alpha1.ConsumerObservations, uint64) {
	return w.said, w.generation
}

func newScale(b *testing.B, o gen.Options) *scale {
	b.Helper()
	s := &scale{b: b, at: o.Now, newest: map[string]wire.Generation{}, seen: &spoken{said: v1alpha1.ConsumerObservations{}, generation: 1}}
	files := o.Inputs()
	read, err := fleet.NewReader().Read(b.Context(), tree.NewMemory().Build(files), nil)
	if err != nil || len(read.Diagnostics) > 0 {
		b.Fatal(err, read.Diagnostics)
	}
	reports := map[string][]v1alpha1.Flavor{}
	for _, f := range read.Flavors {
		reports[f.Metadata.Namespace] = append(reports[f.Metadata.Namespace], *f)
	}
	s.names = slices.Sorted(maps.Keys(reports))
	// What agents report is in no file.
	maps.DeleteFunc(files, func(path string, _ []byte) bool { return strings.HasPrefix(path, "flavors/") })
	known, err := fleet.NewReader().Read(b.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		b.Fatal(err)
	}
	s.market = market.New(market.Options{Now: func() time.Time { return s.at }})
	s.market.SetInputs(market.Inputs{Fleet: known.Policy, Clusters: known.Clusters})
	for _, name := range s.names {
		s.report(name, reports[name])
	}
	led := s.ledger(known)
	remote := memremote.New()
	if _, err := remote.Commit("main", gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: o.Now}, "Begin", gitobj.Change{Puts: map[string][]byte{"fleet.yaml": []byte("kind: Fleet\n")}}); err != nil {
		b.Fatal(err)
	}
	now := func() time.Time { return s.at }
	repo, err := gitrepo.Open(b.Context(), remote, gitrepo.Options{Inputs: "main", Ledger: "main", Now: now})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = repo.Close() })
	s.r = New(Options{Repo: repo, Market: s.market, Delivery: s.seen, Now: now, Poll: time.Hour * 1e4, Shadow: true})
	if s.r.heads, err = repo.Fetch(b.Context()); err != nil {
		b.Fatal(err)
	}
	s.r.fleet, s.r.ledger, s.r.asked = known, led, s.at
	s.r.state = &verify.State{Clean: s.r.heads.Inputs.Commit.Hash}
	s.r.authors = authors{fleet: known, ledger: led, number: 1}
	s.r.ask.Store(false)
	return s
}

// ledger is the fleet's at rest, as it is read from its files.
func (s *scale) ledger(f *fleet.Fleet) *ledger.Ledger {
	led := ledger.Empty()
	for {
		w := world.Build(world.Input{Now: v1alpha1.TimeOf(s.at), Fleet: f, Ledger: led, Market: s.market.Snapshot(), Observed: s.seen.said})
		plan := planner.Decide(w)
		if !plan.Changes() {
			break
		}
		led = led.With(plan.LedgerChanges())
		under := map[string]map[string]v1alpha1.Resources{}
		for c := range led.Contracts() {
			if s.seen.said[c.Spec.Consumer] == nil {
				s.seen.said[c.Spec.Consumer] = map[string]v1alpha1.ConsumerObservation{}
			}
			s.seen.said[c.Spec.Consumer][c.Metadata.Name] = v1alpha1.ConsumerObservation{
				Reachable: true, Slice: v1alpha1.Present, Granted: c.Spec.Resources, VirtualNode: v1alpha1.Present,
				Node: v1alpha1.Present, NodeReady: true, Allocatable: c.Spec.Resources, Offloading: true,
			}
			ref := c.Spec.Provider + "/" + c.Spec.Flavor
			if under[ref] == nil {
				under[ref] = map[string]v1alpha1.Resources{}
			}
			under[ref][c.Metadata.Name] = asReported(c)
		}
		for _, name := range s.names {
			list := s.reported(name)
			for i := range list {
				list[i].Spec.Held = under[list[i].Ref()]
			}
			s.report(name, list)
		}
		s.at = s.at.Add(time.Second)
	}
	active := 0
	for c := range led.Contracts() {
		if c.Status.Phase == v1alpha1.PhaseActive {
			active++
		}
	}
	if active != len(f.Intents) {
		s.b.Fatalf("%d contracts work for %d intents", active, len(f.Intents))
	}
	var all ledger.Changes
	for c := range led.Contracts() {
		all.Contracts = append(all.Contracts, model.Change{After: c})
	}
	for st := range led.States() {
		all.States = append(all.States, model.StateChange{After: st})
	}
	files, _, err := all.Files()
	if err != nil {
		s.b.Fatal(err)
	}
	led, _, err = ledger.Read(s.b.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		s.b.Fatal(err)
	}
	return led
}

// asReported is what runs under a contract in its flavor's words.
func asReported(c *v1alpha1.Contract) v1alpha1.Resources {
	out := c.Spec.Resources.Clone()
	if g := c.Spec.GPUs; g != nil {
		out[v1alpha1.GPU] = out[g.ResourceName]
		delete(out, g.ResourceName)
	}
	return out
}

// reported is what a provider last reported: the market keeps it, and nothing
// else does.
func (s *scale) reported(provider string) (list []v1alpha1.Flavor) {
	for _, o := range s.market.Snapshot().Of(provider) {
		list = append(list, *o.Flavor)
	}
	return list
}

func (s *scale) report(provider string, list []v1alpha1.Flavor) {
	s.n++
	s.newest[provider] = wire.Generation{Epoch: 1, N: s.n}
	if err := s.market.Report(provider, s.newest[provider], list, true); err != nil {
		s.b.Fatal(err)
	}
}

// still is a report that nothing has changed.
func (s *scale) still(provider string) {
	if err := s.market.Report(provider, s.newest[provider], nil, false); err != nil {
		s.b.Fatal(err)
	}
}

// round makes one that must plan.
func (s *scale) round() *planner.Plan {
	out, err := s.r.Round(context.Background())
	if err != nil {
		s.b.Fatal(err)
	}
	if out.Plan == nil {
		s.b.Fatal("a round with news did not plan")
	}
	return out.Plan
}

// news is one thing that happens, the n-th time: before prepares it, and what
// it returns makes it happen.
var news = []struct {
	name   string
	before func(s *scale, n int) (happens func())
}{
	{"flavor=capacity", func(s *scale, n int) func() {
		return s.changed(n, func(f *v1alpha1.Flavor) {
			f.Spec.Capacity = f.Spec.Capacity.Add(v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)})
		})
	}},
	{"flavor=price", func(s *scale, n int) func() {
		return s.changed(n, func(f *v1alpha1.Flavor) {
			p := *f.Spec.Price
			p.PerHour = maps.Clone(p.PerHour)
			p.PerHour[v1alpha1.GPU] = v1alpha1.DecimalFromInt(int64(2 + n%5))
			f.Spec.Price = &p
		})
	}},
	{"provider=silent", func(s *scale, n int) func() {
		for range 4 {
			s.at = s.at.Add(25 * time.Second)
			for i, name := range s.names {
				if i != n%len(s.names) {
					s.still(name)
				}
			}
		}
		return func() {}
	}},
	{"contract=trouble", func(s *scale, n int) func() {
		at := n * 7919 % len(s.r.fleet.Intents)
		it := s.r.fleet.Intents[at]
		next := maps.Clone(s.seen.said)
		for _, c := range s.r.ledger.ByIntent(it.Metadata.Namespace, it.Metadata.Name) {
			next[c.Spec.Consumer] = maps.Clone(next[c.Spec.Consumer])
			o := next.Of(c.Spec.Consumer, c.Metadata.Name)
			o.NodeReady = !o.NodeReady
			next[c.Spec.Consumer][c.Metadata.Name] = o
		}
		return func() { s.seen.said, s.seen.generation = next, s.seen.generation+1 }
	}},
	{"tenant=changed", func(s *scale, n int) func() {
		next := *s.r.fleet
		name := slices.Sorted(maps.Keys(next.Tenants))[n%len(next.Tenants)]
		changed, most := *next.Tenants[name], int32(1000+n) //nolint:gosec // a few rounds
		changed.Spec.MaxPriority = &most
		next.Tenants = maps.Clone(next.Tenants)
		next.Tenants[name] = &changed
		return s.reads(&next)
	}},
	{"provider=cordoned", func(s *scale, n int) func() {
		next := *s.r.fleet
		changed := *next.Clusters[s.names[n%len(s.names)]]
		changed.Spec.Cordon = true
		next.Clusters = maps.Clone(next.Clusters)
		next.Clusters[changed.Metadata.Name] = &changed
		return s.reads(&next)
	}},
	{"intent=new", func(s *scale, n int) func() {
		path, content := gen.NewIntent(0, n)
		one, err := fleet.NewReader().Read(s.b.Context(), tree.NewMemory().Build(map[string][]byte{path: content}), nil)
		if err != nil {
			s.b.Fatal(err)
		}
		next := *s.r.fleet
		next.Intents = append(slices.Clip(slices.Clone(next.Intents)), one.Intents...)
		slices.SortFunc(next.Intents, func(x, y *model.Intent) int {
			return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
		})
		one.Intents[0].Problem = ""
		return s.reads(&next)
	}},
}

// reads is a commit of the inputs that makes them another fleet.
func (s *scale) reads(f *fleet.Fleet) func() {
	return func() {
		s.commits++
		s.r.fleet, s.r.inputs = f, tree.Hash{byte(s.commits), byte(s.commits >> 8), 1}
		if err := s.r.attribute(s.b.Context(), true); err != nil {
			s.b.Fatal(err)
		}
	}
}

// changed is a report in which one flavor is another.
func (s *scale) changed(n int, change func(*v1alpha1.Flavor)) func() {
	name := s.names[n*31%len(s.names)]
	list := s.reported(name)
	change(&list[n%len(list)])
	return func() { s.report(name, list) }
}

// BenchmarkWholeRound is all of a round after one change, from the news to the
// decision that is shown, in a daemon that holds so many intents on as many
// flavors: market, observations, world, plan and view. What a push takes comes
// on top. It reports the median by the clock and in processor time, garbage
// collection included, the slowest, and what the process holds.
func BenchmarkWholeRound(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("held=%d", n), func(b *testing.B) {
			o := gen.Options{Tenants: 10, Intents: n / 10, Held: n / 10, Providers: max(n/100, 10), Flavors: n / max(n/100, 10), Consumers: 10, Delivery: "none", Now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
			s := newScale(b, o)
			debug.FreeOSMemory()
			if plan := s.round(); plan.Changes() {
				b.Fatalf("the fleet is not at rest: %v", plan.Summary())
			}
			for _, one := range news {
				b.Run(one.name, func(b *testing.B) { s.measure(b, one.before) })
			}
			debug.FreeOSMemory() // what making the fleet took is not the daemon's
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			b.Logf("held=%d: live heap %d MiB, resident %s", n, mem.HeapAlloc>>20, resident(b))
			runtime.KeepAlive(s)
		})
	}
}

func (s *scale) measure(b *testing.B, before func(*scale, int) func()) {
	b.Helper()
	var took, used []time.Duration
	n, scratch := 0, s.r.plans.Scratch()
	for b.Loop() {
		b.StopTimer()
		n++
		happens := before(s, n)
		s.at = s.at.Add(time.Second)
		begin, cpu := time.Now(), cpuTime(b)
		b.StartTimer()
		happens()
		s.round()
		took, used = append(took, time.Since(begin)), append(used, cpuTime(b)-cpu)
	}
	if made := s.r.plans.Scratch() - scratch; made > 0 {
		b.Errorf("%d of %d rounds were planned from nothing", made, n)
	}
	slices.Sort(took)
	slices.Sort(used)
	b.ReportMetric(float64(used[len(used)/2].Microseconds())/1000, "median-cpu-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "slowest-ms")
}

// cpuTime is the processor's time that this process has had: the machine may be
// busy with other things.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is the current size of this process in memory.
func resident(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(size)
		}
	}
	return "unknown"
}
