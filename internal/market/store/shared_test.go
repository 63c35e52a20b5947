package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// replicas are several that share one store, under one clock.
type replicas struct {
	t       *testing.T
	now     time.Time
	objects *storetest.Objects
	lines   logtest.Lines // what all of them log
	all     []*replica
}

type replica struct {
	name   string
	api    *storetest.API
	market *market.Market
	store  *store.Shared
	cut    bool
	seen   []string
	unseen []string
	news   int
	hooks  int
	away   bool
}

func newReplicas(t *testing.T, names ...string) *replicas {
	t.Helper()
	r := &replicas{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), objects: &storetest.Objects{}}
	for _, name := range names {
		r.start(name, "1")
	}
	r.tick(2)
	return r
}

// start adds a replica, or starts it again in another life.
func (r *replicas) start(name, life string) *replica {
	r.t.Helper()
	r.all = slices.DeleteFunc(r.all, func(one *replica) bool { return one.name == name })
	one := &replica{name: name, api: r.objects.API(), market: market.New(market.Options{Now: func() time.Time { return r.now }})}
	one.store = store.NewShared(store.Options{
		API: one.api, Market: one.market, Replica: name, Life: life, Now: func() time.Time { return r.now }, Log: r.lines.Logger(),
		Observed: func(_, cluster string, report wire.Observed) {
			if _, err := wire.ParseGeneration(report.Generation); err != nil {
				r.t.Errorf("%s is told of %s without a generation: %v", name, cluster, err)
			}
			one.seen = append(one.seen, cluster+" "+report.Root[:2])
		},
		Unobserved: func(cluster string) { one.unseen = append(one.unseen, cluster) },
		News:       func() { one.news++ },
		Webhook:    func() { one.hooks++ },
		Away:       func() bool { return one.away },
	})
	one.store.Follow(r.t.Context(), one.api.Follow)
	r.all = append(r.all, one)
	return one
}

// tick lets seconds pass; whoever is not cut off is told all there is.
func (r *replicas) tick(seconds int) {
	for range seconds {
		r.now = r.now.Add(time.Second)
		for _, one := range r.all {
			one.api.Deliver(0)
			one.store.Look(r.t.Context())
			one.store.Tend(r.t.Context())
			one.api.Deliver(0)
		}
	}
}

func (r *replicas) settle() {
	for _, one := range r.all {
		one.api.Deliver(0)
	}
}

func flavors(provider string, gpus, used int64) *wire.FlavorReport {
	return &wire.FlavorReport{Flavors: []v1alpha1.Flavor{{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: provider},
		Spec: v1alpha1.FlavorSpec{
			Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpus), v1alpha1.CPU: v1alpha1.AmountOf(64_000)},
			Used:     v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(used)},
			GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"},
		},
	}}}
}

// report is a provider's to one replica; nil content says that nothing changed.
func (one *replica) report(provider string, epoch, n uint64, content *wire.FlavorReport) error {
	return one.store.Report(context.Background(), store.Report{Cluster: provider, Generation: wire.Generation{Epoch: epoch, N: n}, Content: content, Certificate: "af01"})
}

func (one *replica) gpus(provider string) int64 {
	o := one.market.Snapshot().Offer(provider, "h100")
	if o == nil {
		return -1
	}
	return o.Flavor.Spec.Capacity[v1alpha1.GPU].Int64()
}

func (one *replica) state(provider string) model.Freshness {
	return one.market.Snapshot().Provider(provider).State
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whichever replica a provider reports to, all have one market.
func TestOneMarket(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	a, b, c := r.all[0], r.all[1], r.all[2]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.settle()
	r.tick(11)
	must(t, b.report("paris", 7, 2, flavors("paris", 16, 0)))
	r.settle()
	for _, one := range r.all {
		if got := one.gpus("paris"); got != 16 || one.state("paris") != model.Fresh {
			t.Errorf("%s has %d GPUs of paris, %s", one.name, got, one.state("paris"))
		}
	}
	// Nothing changes, and each report goes to another replica: heard by all.
	for i := range 20 {
		must(t, r.all[i%3].report("paris", 7, 2, nil))
		r.tick(30)
	}
	for _, one := range r.all {
		if one.state("paris") != model.Fresh {
			t.Errorf("%s holds paris for %s", one.name, one.state("paris"))
		}
	}
	if got := c.store.Status().Replicas; !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("replicas that live: %v", got)
	}
}

// A generation never goes back, whichever replica is asked, also where its watch
// lags behind.
func TestGenerationsNeverGoBack(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 5, flavors("paris", 8, 0)))
	// b has not been told.
	var stale *market.StaleEpochError
	if err := b.report("paris", 7, 4, flavors("paris", 4, 0)); !errors.As(err, &stale) || stale.Last.N != 5 {
		t.Errorf("an older list at the other replica: %v", err)
	}
	if err := b.report("paris", 7, 4, nil); !errors.As(err, &stale) || stale.Last.N != 5 {
		t.Errorf("an older unchanged report: %v", err)
	}
	if err := b.report("paris", 7, 6, nil); !errors.Is(err, market.ErrUnknownBase) {
		t.Errorf("an unchanged report of a list that nobody has: %v", err)
	}
	if err := b.report("paris", 7, 5, nil); err != nil {
		t.Errorf("an unchanged report at the other replica: %v", err)
	}
	if b.gpus("paris") != 8 {
		t.Errorf("b heard the list and has %d GPUs", b.gpus("paris"))
	}
	r.settle()
	for _, one := range r.all {
		if one.gpus("paris") != 8 {
			t.Errorf("%s: %d", one.name, one.gpus("paris"))
		}
	}
}

// After a start the market is there at once and sells nothing of a provider before
// it is heard; nobody's silence counts from before.
func TestStartsWithTheMarket(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.settle()
	r.all = nil // it dies, and for an hour there is none
	r.now = r.now.Add(time.Hour)
	b := r.start("b", "1")
	r.tick(1)
	if b.gpus("paris") != 8 {
		t.Fatalf("after the start b has %d GPUs of paris", b.gpus("paris"))
	}
	if got := b.state("paris"); got != model.Elsewhere {
		t.Errorf("paris is %s though it was not heard yet", got)
	}
	if b.market.Heard("paris").After(time.Time{}) {
		t.Error("paris counts as heard")
	}
	if !b.market.Snapshot().Deaf([]string{"paris"}) {
		t.Error("b is not deaf although it has heard nobody that holds contracts")
	}
	r.tick(60)
	must(t, b.report("paris", 7, 1, nil))
	if got := b.state("paris"); got != model.Fresh {
		t.Errorf("heard, paris is %s", got)
	}
	// Another one that is not heard is silent after its intervals, lost after its grace.
	must(t, b.report("oslo", 7, 1, flavors("oslo", 4, 0)))
	r.tick(12) // b has said so
	c := r.start("c", "1")
	r.tick(1)
	for _, want := range []struct {
		wait  time.Duration
		state model.Freshness
	}{{0, model.Elsewhere}, {95 * time.Second, model.Silent}, {4 * time.Minute, model.Lost}} {
		r.tick(int(want.wait / time.Second))
		if got := c.state("oslo"); got != want.state {
			t.Errorf("after %s more oslo is %s, not %s", want.wait, got, want.state)
		}
	}
}

// An outage of the store fails nothing over, whatever it lasts, and grace begins
// anew when it is over.
func TestOutage(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(5)
	for _, one := range r.all {
		one.api.Out(true)
	}
	r.tick(25)
	var cut *store.CutError
	if err := a.report("paris", 7, 1, nil); !errors.As(err, &cut) {
		t.Errorf("a report without the store: %v", err)
	}
	for _, one := range r.all {
		if one.store.Status().Cut == "" || !one.market.Snapshot().Deaf(nil) {
			t.Errorf("%s is not deaf: %+v", one.name, one.store.Status())
		}
	}
	r.tick(1800)
	if got := b.state("paris"); got != model.Fresh {
		t.Errorf("after half an hour without the store paris is %s", got)
	}
	for _, one := range r.all {
		one.api.Out(false)
	}
	r.tick(15)
	if got := b.state("paris"); got != model.Elsewhere || b.store.Status().Cut != "" {
		t.Errorf("the store is back and paris %s, %+v", got, b.store.Status())
	}
	must(t, a.report("paris", 7, 1, nil))
	r.tick(12)
	for _, one := range r.all {
		if got := one.state("paris"); got != model.Fresh {
			t.Errorf("%s: heard after the outage, paris is %s", one.name, got)
		}
	}
	// A short one is none.
	b.api.Out(true)
	r.tick(8)
	b.api.Out(false)
	r.tick(3)
	if got := b.state("paris"); got != model.Fresh || b.store.Status().Cut != "" {
		t.Errorf("after eight seconds paris is %s, %+v", got, b.store.Status())
	}
	r.lines.Wants(t, "FB1090")
}

// Who deletes the objects withdraws nothing: the next reports bring them back.
func TestWiped(t *testing.T) {
	r := newReplicas(t, "a", "b")
	must(t, r.all[0].report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(5)
	r.objects.Wipe()
	r.tick(30)
	for _, one := range r.all {
		if one.gpus("paris") != 8 {
			t.Errorf("%s has %d GPUs of paris", one.name, one.gpus("paris"))
		}
	}
	c := r.start("c", "1")
	r.tick(2)
	if err := c.report("paris", 7, 1, nil); !errors.Is(err, market.ErrUnknownBase) {
		t.Fatalf("the list is nowhere: %v", err)
	}
	// Nothing changes at paris, which goes on reporting where it did: that brings it back.
	if err := r.all[0].report("paris", 7, 1, nil); !errors.Is(err, market.ErrUnknownBase) {
		t.Fatalf("the replica that has the list in memory alone: %v", err)
	}
	must(t, r.all[0].report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(12)
	if c.gpus("paris") != 8 || c.state("paris") != model.Fresh {
		t.Fatalf("who came later has %d GPUs of paris, %s", c.gpus("paris"), c.state("paris"))
	}
	must(t, r.all[0].report("paris", 7, 2, flavors("paris", 4, 0)))
	r.settle()
	for _, one := range r.all {
		if one.gpus("paris") != 4 {
			t.Errorf("%s has %d GPUs of paris", one.name, one.gpus("paris"))
		}
	}
}

// What a provider may write has a budget; what takes something back is written at
// once; who has to wait is heard.
func TestPace(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	var busy *store.BusyError
	r.tick(3)
	if err := a.report("paris", 7, 2, flavors("paris", 16, 0)); !errors.As(err, &busy) || busy.After > 10*time.Second || busy.After < time.Second {
		t.Errorf("more after three seconds: %v", err)
	}
	must(t, a.report("paris", 7, 3, flavors("paris", 4, 0)))
	if a.gpus("paris") != 4 {
		t.Errorf("less is not known: %d", a.gpus("paris"))
	}
	r.tick(11)
	must(t, a.report("paris", 7, 4, flavors("paris", 16, 0)))
	r.tick(11)
	if err := a.report("paris", 7, 5, flavors("paris", 16, 100)); !errors.As(err, &busy) {
		t.Errorf("a little more use after eleven seconds: %v", err)
	}
	r.tick(50)
	must(t, a.report("paris", 7, 6, flavors("paris", 16, 100)))
	// Refused again and again, paris is heard all the time.
	for i := range 40 {
		r.tick(5)
		_ = a.report("paris", 7, uint64(7+i), flavors("paris", 16, int64(200+i)))
	}
	if got := a.state("paris"); got != model.Fresh {
		t.Errorf("paris is %s", got)
	}
	if got := r.objects.Versions("paris"); got > 10 {
		t.Errorf("%d writes in five minutes", got)
	}
}

// A report above the size of one object is whole for every reader, and what is
// left of it goes.
func TestParts(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	large := func(seed uint64) *wire.FlavorReport {
		rnd := rand.New(rand.NewPCG(seed, 1))
		out := flavors("paris", 8, 0)
		one := out.Flavors[0]
		for i := range 1500 {
			f := one
			f.Metadata.Name = fmt.Sprintf("f%04d", i)
			f.Spec.Labels = map[string]string{}
			for k := range 14 {
				f.Spec.Labels[fmt.Sprintf("l%d", k)] = fmt.Sprintf("%x%x", rnd.Uint64(), rnd.Uint64())
			}
			out.Flavors = append(out.Flavors, f)
		}
		return out
	}
	must(t, a.report("paris", 7, 1, large(1)))
	r.tick(2)
	if n := len(b.market.Snapshot().Of("paris")); n != 1501 {
		t.Fatalf("b has %d flavors", n)
	}
	first := r.objects.PartNames()
	if len(first) < 2 {
		t.Fatalf("in %d parts", len(first))
	}
	r.tick(20)
	must(t, b.report("paris", 7, 2, large(2)))
	r.tick(200)
	second := r.objects.PartNames()
	for _, name := range first {
		if slices.Contains(second, name) {
			t.Errorf("part %s is left", name)
		}
	}
	c := r.start("c", "1")
	r.tick(2)
	if n := len(c.market.Snapshot().Of("paris")); n != 1501 {
		t.Errorf("c has %d flavors", n)
	}
	r.tick(20)
	must(t, a.report("paris", 7, 3, flavors("paris", 8, 0)))
	r.tick(200)
	if left := r.objects.PartNames(); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
	if err := a.report("oslo", 7, 1, func() *wire.FlavorReport {
		out := large(3)
		for i := range out.Flavors {
			f := &out.Flavors[i]
			f.Metadata.Namespace = "oslo"
			rnd := rand.New(rand.NewPCG(uint64(i), 3))
			if f.Spec.Labels == nil {
				f.Spec.Labels = map[string]string{}
			}
			for k := range 60 {
				f.Spec.Labels[fmt.Sprintf("m%d", k)] = fmt.Sprintf("%x%x", rnd.Uint64(), rnd.Uint64())
			}
		}
		return out
	}()); err == nil || !strings.Contains(err.Error(), "KiB packed") {
		t.Errorf("more than the store takes: %v", err)
	}
}

// What a consumer's agent tells one replica, all know: at once when it is another
// thing, by the next heartbeat when it is the same. An older word never counts.
func TestObservations(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	a, b, c := r.all[0], r.all[1], r.all[2]
	say := func(one *replica, n int, root string) {
		t.Helper()
		must(t, one.store.Observe(t.Context(), "rome", wire.Observed{Generation: fmt.Sprintf("5.%d", n), Root: strings.Repeat(root, 20)}))
	}
	take := func(one *replica) string {
		out := strings.Join(one.seen, ",")
		one.seen = nil
		return out
	}
	say(a, 1, "aa")
	r.settle()
	if got := take(a) + "|" + take(b) + "|" + take(c); got != "|rome aa|rome aa" {
		t.Errorf("told once: %s", got)
	}
	say(b, 2, "aa") // the same, to another one
	r.tick(12)
	if got := take(a) + "|" + take(b) + "|" + take(c); got != "rome aa||rome aa" {
		t.Errorf("told again: %s", got)
	}
	say(b, 4, "bb")
	say(a, 3, "aa") // held up on its way, and a does not know yet
	var stale *market.StaleEpochError
	if err := a.store.Observe(t.Context(), "rome", wire.Observed{Generation: "5.3", Root: strings.Repeat("cc", 20)}); !errors.As(err, &stale) || stale.Last.N != 4 {
		t.Errorf("an older word: %v", err)
	}
	r.tick(1)
	if got := take(a) + "|" + take(b) + "|" + take(c); got != "rome bb||rome bb" {
		t.Errorf("told out of order: %s", got)
	}
	d := r.start("d", "1")
	r.tick(1)
	if got := take(d); got != "" {
		t.Errorf("who starts believes what was said before: %s", got)
	}
}

// News of the fleet repo reach the others within a second.
func TestNews(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	r.tick(3)
	a.store.Called()
	r.tick(1)
	if b.news != 0 || a.news != 0 || b.hooks != 1 || a.hooks != 0 {
		t.Errorf("after a webhook: %d, %d", a.hooks, b.hooks)
	}
	a.store.Head("aaaa", true)
	r.tick(1)
	b.store.Head("aaaa", false)
	r.tick(11)
	if b.news != 1 || a.news != 0 || b.hooks != 1 {
		t.Errorf("after a commit: %d, %d, by a webhook %d", a.news, b.news, b.hooks)
	}
}

// TestDeliverers: whom the fleet repo does not answer delivers to no cluster while it answers
// another one, and is live all the same.
func TestDeliverers(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	a, b, c := r.all[0], r.all[1], r.all[2]
	deliver := func(of *replica, want ...string) {
		t.Helper()
		r.tick(12)
		if got, cut := of.store.Deliverers(); cut || !slices.Equal(got, want) {
			t.Errorf("to %s %v deliver, cut off %t; want %v", of.name, got, cut, want)
		}
		r.live(of, "a", "b", "c")
	}
	deliver(a, "a", "b", "c")
	b.away = true
	deliver(a, "a", "c")
	deliver(b, "a", "c")
	a.away, c.away = true, true
	deliver(b, "a", "b", "c")
	b.away = false
	deliver(c, "b")
}

// What an agent had carried out is known to every replica, also to one that starts
// later, and is no small change of a list.
func TestHonouredIsShared(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	list := flavors("paris", 8, 0)
	list.Honoured = 4
	must(t, a.report("paris", 7, 1, list))
	r.tick(2)
	if x, y := a.market.Honoured("paris"), b.market.Honoured("paris"); x != 4 || y != 4 {
		t.Errorf("a knows %d and b %d, want 4", x, y)
	}
	r.tick(11)
	next := flavors("paris", 8, 1)
	next.Honoured = 5
	must(t, a.report("paris", 7, 2, next))
	r.tick(2)
	if got := b.market.Honoured("paris"); got != 5 {
		t.Errorf("b knows %d, want 5", got)
	}
}

// A word that another replica took is as fresh as any and proves nothing of what
// happened just before it came: it may have been given before.
func TestLateWords(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(2)
	seenGone := r.now
	must(t, a.report("paris", 7, 1, nil))
	r.tick(12)
	if b.state("paris") != model.Fresh || b.market.Heard("paris").After(seenGone) {
		t.Errorf("b takes a word of before %s for one of %s", seenGone, b.market.Heard("paris"))
	}
	if !a.market.Heard("paris").Before(seenGone) {
		must(t, a.report("paris", 7, 1, nil))
	}
	for range 3 {
		r.tick(30)
		must(t, a.report("paris", 7, 1, nil))
	}
	r.tick(12)
	if !b.market.Heard("paris").After(seenGone) {
		t.Errorf("b never takes paris' word: %s", b.market.Heard("paris"))
	}
	// What was made smaller is shown as it was until a word that was given after it.
	b.market.StillHeld("paris", "h100", "slice", ledger.Had{Resources: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(4)}})
	must(t, a.report("paris", 7, 1, nil))
	r.tick(12)
	if held := b.market.Snapshot().Offer("paris", "h100").Flavor.Spec.Held["slice"]; held[v1alpha1.GPU].Int64() != 4 {
		t.Errorf("b let go of it by a word of before: %v", held)
	}
	must(t, b.report("paris", 7, 1, nil))
	if held := b.market.Snapshot().Offer("paris", "h100").Flavor.Spec.Held["slice"]; len(held) > 0 {
		t.Errorf("b heard paris itself and shows %v", held)
	}
}

// Before capacity is taken the store itself is asked: a watch may lag.
func TestNewest(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.settle()
	r.tick(1)
	must(t, a.report("paris", 7, 2, flavors("paris", 2, 0))) // b is not told
	if got := b.gpus("paris"); got != 8 {
		t.Fatalf("b has %d", got)
	}
	if err := b.store.Newest(t.Context(), []string{"oslo", "paris"}); err != nil || b.gpus("paris") != 2 {
		t.Errorf("%v, %d GPUs", err, b.gpus("paris"))
	}
	b.api.Out(true)
	if err := b.store.Newest(t.Context(), []string{"paris"}); err == nil {
		t.Error("no error without the store")
	}
}

// A list that one replica cannot read is looked at again; until then its provider
// sells nothing there, and is not silent.
func TestUnreadOnce(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(12)
	must(t, a.report("paris", 7, 2, flavors("paris", 16, 0)))
	b.api.Skip() // the watch of b never tells it
	for range 4 {
		r.tick(30)
		must(t, a.report("paris", 7, 2, nil))
		if got := b.state("paris"); got == model.Silent || got == model.Lost {
			t.Fatalf("paris reports and is %s to b", got)
		}
	}
	r.tick(15)
	if b.gpus("paris") != 16 || b.state("paris") != model.Fresh {
		t.Errorf("b has %d GPUs of paris, %s", b.gpus("paris"), b.state("paris"))
	}
}

// A snapshot of an hour ago takes the place of the objects: nobody fails over, and
// the next reports bring back what is newer.
func TestRestoredFromOldSnapshot(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 4, 0)))
	old := r.objects.Snapshot()
	r.tick(30)
	must(t, a.report("paris", 7, 2, flavors("paris", 16, 0)))
	r.tick(30)
	r.objects.Restore(old)
	r.tick(12)
	c := r.start("c", "1") // knows only what the snapshot has
	r.tick(2)
	// The agent reports where it always did, and nothing changes with it.
	for range 20 {
		r.tick(30)
		if err := a.report("paris", 7, 2, nil); errors.Is(err, market.ErrUnknownBase) {
			must(t, a.report("paris", 7, 2, flavors("paris", 16, 0)))
		} else if err != nil {
			t.Fatal(err)
		}
		for _, one := range r.all {
			if got := one.state("paris"); got == model.Silent || got == model.Lost {
				t.Fatalf("paris reports and is %s to %s", got, one.name)
			}
		}
	}
	r.tick(12)
	if c.gpus("paris") != 16 || c.state("paris") != model.Fresh {
		t.Errorf("c has %d GPUs of paris, %s", c.gpus("paris"), c.state("paris"))
	}
}

// A replica that was held up for minutes, as a machine is that is moved, takes
// nobody for lost: it listened to nobody.
func TestHeldUp(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(12)
	r.now = r.now.Add(20 * time.Minute) // b stands still, and so do all
	b.store.Look(t.Context())
	if got := b.state("paris"); got == model.Silent || got == model.Lost {
		t.Errorf("after standing still for 20 minutes paris is %s", got)
	}
}

// It finds out before it waits for the store: a round may look meanwhile. And where the
// store does not answer, it hears nobody until it does.
func TestHeldUp_FindsOutFirst(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(12)
	fine := func(when string) {
		t.Helper()
		if got := b.state("paris"); got == model.Silent || got == model.Lost {
			t.Errorf("%s paris is %s", when, got)
		}
	}
	written := 0
	b.api.Fault = func(string) (bool, bool) {
		written++
		fine("while the beat is written")
		return false, false
	}
	r.now = r.now.Add(20 * time.Minute)
	b.store.Look(t.Context())
	if fine("after it"); written == 0 {
		t.Error("no beat was written")
	}
	b.api.Fault = func(string) (bool, bool) { return true, false }
	r.now = r.now.Add(11 * time.Second)
	b.store.Look(t.Context())
	b.api.Out(true)
	r.now = r.now.Add(20 * time.Minute)
	b.store.Look(t.Context())
	if fine("with the store out of reach"); b.store.Status().Cut == "" {
		t.Error("with the store out of reach it listens")
	}
}

// One certificate's urgent reports have a budget.
func TestUrgentBudget(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 64, 0)))
	for i := range 600 { // ten minutes at its limits: less, more, less
		r.tick(1)
		_ = a.report("paris", 7, uint64(2+i), flavors("paris", int64(64-i%2), 0))
	}
	if got := r.objects.Versions("paris"); got > 126 { // twice one each 10 s, and what was saved up
		t.Errorf("%d writes in ten minutes", got)
	}
	if got := a.state("paris"); got != model.Fresh {
		t.Errorf("paris is %s", got)
	}
}

// Live are the replicas whose Heartbeat changed in the last 30 s, and who they are is
// not known without the store.
func TestLive(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	a := r.all[0]
	r.tick(21) // two beats of each
	if got, cut := a.store.Live(); cut || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("live are %v, cut off %t", got, cut)
	}
	r.all = slices.DeleteFunc(r.all, func(one *replica) bool { return one.name == "b" }) // it dies
	r.tick(41)
	if got, cut := a.store.Live(); cut || !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("after b died live are %v, cut off %t", got, cut)
	}
	if _, cut := r.start("d", "1").store.Live(); !cut {
		t.Error("who has read nothing knows who lives")
	}
}

// clockOf is the clock of some replicas.
func clockOf(r *replicas) func() time.Time { return func() time.Time { return r.now } }
