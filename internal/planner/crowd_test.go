package planner_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// crowds are what one tenant may commit to keep a round busy. Nothing fits but
// where it is set.
var crowds = []struct {
	name             string
	intents, flavors int
	contracts        int64 // limits.contracts, 0: the default
	wants            func(i int, in *model.Intent)
}{
	{"equal", 50_000, 1000, 0, func(_ int, in *model.Intent) { Wants(50, "H100")(in) }},
	{"distinct", 50_000, 1000, 0, func(i int, in *model.Intent) { Wants(50, "H100")(in); cores(in, 4000+i) }},
	{"distinct-10k-flavors", 50_000, 10_000, 0, func(i int, in *model.Intent) { Wants(50, "H100")(in); cores(in, 4000+i) }},
	{"budgets", 50_000, 1000, 0, func(i int, in *model.Intent) {
		Wants(4, "H100")(in)
		cores(in, 4000+i)
		AtMost(fmt.Sprintf("0.%05d", i+1))(in)
	}},
	{"replicas", 1000, 1000, 20_000, func(i int, in *model.Intent) {
		Wants(8, "H100")(in)
		Times(10_000)(in)
		cores(in, 4000+i)
		in.Spec.Gang = Ptr(false)
	}},
	{"gangs", 1000, 1000, 20_000, func(i int, in *model.Intent) { Wants(8, "H100")(in); Times(10_000)(in); cores(in, 4000+i) }},
	{"fit", 50_000, 1000, 0, func(i int, in *model.Intent) { Wants(1)(in); cores(in, 1000+i%1000) }},
}

func cores(in *model.Intent, milli int) {
	in.Spec.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(int64(milli))
}

// crowd is a market with n intents of one tenant, and another tenant without any.
func crowd(n, flavors int, contracts int64, wants func(int, *model.Intent)) *Builder {
	b := market(flavors).Tenant("crowd", "home").Tenant("other", "home").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits = v1alpha1.Limits{Contracts: contracts} })
	for i := range n {
		name := fmt.Sprintf("i%06d", i)
		in := model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: name, Namespace: "crowd"}}, Path: "intents/crowd/" + name + ".yaml", Author: "a"}
		wants(i, &in)
		in.Digest = Digest(in.ResourceIntent)
		b.W.Intents = append(b.W.Intents, &in)
	}
	return b
}

// another adds an intent of the other tenant.
func another(b *Builder, n int) {
	b.Intent(fmt.Sprintf("other/n%03d", n), Wants(1, "L4"))
	slices.SortStableFunc(b.W.Intents, func(x, y *model.Intent) int { return cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace) })
}

// BenchmarkCrowd is how much longer the decision on another tenant's intent takes
// because of what one tenant commits, in processor time: when all of it comes at
// once, and when it waits already. The bound is one second.
func BenchmarkCrowd(b *testing.B) {
	for _, c := range crowds {
		b.Run(fmt.Sprintf("%s/intents=%d", c.name, c.intents), func(b *testing.B) {
			for b.Loop() {
				memories := [2]planner.Session{}
				alone, with := crowd(0, c.flavors, c.contracts, c.wants), crowd(c.intents, c.flavors, c.contracts, c.wants)
				for _, at := range []string{"new", "next", "waits"} {
					var took [2]time.Duration
					for i, w := range []*Builder{alone, with} {
						another(w, len(w.W.Intents))
						m := &memories[i]
						start := cpuTime(b)
						p := m.Decide(w.W)
						took[i] = cpuTime(b) - start
						if d := p.Intents[len(p.Intents)-1]; d.Tenant != "other" || d.Action != planner.Place && c.name != "fit" {
							b.Fatalf("%s: %s", d.Name, d.Action)
						}
						w.Apply(p)
						w.Tick(time.Minute)
					}
					b.ReportMetric(float64((took[1] - took[0]).Milliseconds()), at+"-ms")
				}
			}
		})
	}
}

// Whatever one tenant commits, a round does no more for it than its units allow,
// and the other tenant is served in the first: 50,000 intents, each of another
// kind, or ten million replicas.
func TestACrowdDelaysNobody(t *testing.T) {
	const offers = 200
	for _, c := range crowds {
		if c.flavors > 1000 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			b := crowd(c.intents, offers, c.contracts, c.wants)
			another(b, 0)
			p, did := planner.CountWork(b.W)
			if d := Of(p, "other/n000"); d.Action != planner.Place {
				t.Errorf("the other tenant's intent: %s, %s", d.Action, d.Reason)
			}
			most := int64(v1alpha1.DefaultWork)
			if did.Looked > 3*most || did.Made > 3*most/400 {
				t.Errorf("looked at %d offers and made %d contracts, with %d units for the decisions and as many for words", did.Looked, did.Made, most)
			}
			if did.Tasks > 20_000 {
				t.Errorf("%d tasks were made", did.Tasks)
			}
			if len(p.States)+len(p.Contracts) > 3*int(most)/500 {
				t.Errorf("it writes %d states and %d contracts", len(p.States), len(p.Contracts))
			}
			waits := 0
			for _, d := range p.Intents {
				if d.Code == lifecycle.CodeWork {
					waits++
				}
			}
			if waits == 0 || waits == c.intents || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > time.Minute {
				t.Errorf("%d of %d wait for their turn, due %s", waits, c.intents, p.Due)
			}
		})
	}
}

// Intents that do not fit into a round have their turn in a later one, without
// anything being written of them meanwhile, and all come to hold what fits.
func TestWorkOfARound(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti")).
		Tenant("nlp", "rome").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1001 })
	for i := range 8 {
		b.Intent(fmt.Sprintf("vision/a%d", i), tiny)
	}
	b.Intent("nlp/z", tiny)
	for round := range 4 {
		p := b.Plan()
		if placed := p.Summary()[planner.Place]; placed < 2 || placed > 4 || Of(p, "nlp/z").Action == planner.Queued {
			t.Fatalf("round %d: %d placed\n%s", round, placed, describe(p))
		}
		for _, s := range p.States {
			if s.After.Status.State == v1alpha1.IntentQueued {
				t.Fatalf("it writes that %s waits", s.After.Metadata.Name)
			}
		}
		if round < 3 && !p.Due.Equal(b.W.Now.Add(10*time.Second)) {
			t.Fatalf("due %s\n%s", p.Due, describe(p))
		}
		b.Apply(p)
		b.Tick(10 * time.Second)
	}
	if n := b.W.Ledger.Held(); n != 9 {
		t.Fatalf("%d of 9 are held", n)
	}
	wantOnlyKeeps(t, b)
}

// A fleet that consolidates looks for better offers within the same units: what
// has no turn keeps its proposals, and has its turn later.
func TestConsolidationIsCharged(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti"), Costs("9", "cpu=1 memoryGi=1")).
		Fleet(consolidating("propose", "0.1", time.Minute))
	for i := range 6 {
		b.Intent(fmt.Sprintf("vision/a%d", i), tiny, condition(i))
	}
	b.Round()
	b.Deliver().Round()
	if n := b.W.Ledger.Held(); n != 6 {
		t.Fatalf("%d of 6 are held", n)
	}
	b.Offer("paris/cheap", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti"), Costs("0.1", "cpu=0.001 memoryGi=0.001"))
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions = 25 })
	proposed := func() (n int) {
		for s := range b.W.Ledger.States() {
			n += len(s.Status.Proposals)
		}
		return n
	}
	p := b.Round()
	first := proposed()
	if first == 0 || first == 6 || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > time.Minute {
		t.Fatalf("%d of 6 proposed, due %s\n%s", first, p.Due, describe(p))
	}
	for range 30 {
		b.Tick(time.Minute)
		before := proposed()
		b.Round()
		if now := proposed(); now < before {
			t.Fatalf("%d proposals, %d before", now, before)
		}
	}
	if n := proposed(); n != 6 {
		t.Fatalf("%d of 6 are proposed in the end", n)
	}
}

// What is shown next to the decisions (near, try) is charged to what the decisions
// leave of the round's conditions.
func TestNearIsCharged(t *testing.T) {
	build := func(most int64) *planner.Plan {
		b := paris().Offer("paris/h100", Capacity("cpu=2 memory=512Gi pods=100 ephemeral-storage=1Ti")).
			Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Conditions = most })
		b.Intent("vision/a", Wants(0), condition(1), With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(5000) }))
		return b.Plan()
	}
	if d := Of(build(1_000_000), "vision/a"); len(d.Near) == 0 || len(d.Try) == 0 {
		t.Fatalf("near %v, try %v", d.Near, d.Try)
	}
	if d := Of(build(1), "vision/a"); d.Code == lifecycle.CodeConditions || len(d.Near)+len(d.Try) > 0 {
		t.Fatalf("%s: near %v, try %v", d.Code, d.Near, d.Try)
	}
}

// What only wants to know, and what holds a part of what it wants, is looked at
// again each minute, and does not keep what is new from its turn.
func TestWhatIsNewHasItsTurn(t *testing.T) {
	b := paris().Offer("paris/h100", Capacity("cpu=8 memory=512Gi pods=5 ephemeral-storage=1Ti")).
		Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 })
	b.Intent("vision/a", tiny, Times(20), func(in *model.Intent) { in.Spec.Gang = Ptr(false) }).Round()
	held := b.W.Ledger.Held()
	b.Intent("vision/b", Wants(0), With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind; s.Priority = 5 }))
	b.Tick(time.Minute).Intent("vision/c", tiny)
	for range 4 {
		b.Round()
		b.Tick(10 * time.Second)
	}
	if held == 0 || held == 20 || b.W.Ledger.State("vision", "c") == nil {
		t.Fatalf("%d of 20 are held; c: %v\n%s", held, b.W.Ledger.State("vision", "c"), describe(b.Plan()))
	}
}
