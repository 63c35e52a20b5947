package quality

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

var full = flag.Bool("full", false, "solve the instances too that take minutes")

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// promised is how far above the optimum a batch may be where supply exceeds
// demand.
const promised = 0.005

// outcome is what somebody came to on an instance.
type outcome struct {
	placed   int
	unplaced int64 // GPUs
	hourly   float64
	took     time.Duration
}

// cost counts what stays unplaced.
func (o outcome) cost() float64 { return o.hourly + float64(unplaced*o.unplaced) }

// decide has the planner decide an instance.
func (in *instance) decide(t *testing.T, objective v1alpha1.Objective) outcome {
	t.Helper()
	w := in.world(objective)
	start := time.Now()
	p := planner.Decide(w)
	o := outcome{took: time.Since(start), unplaced: in.demand()}
	for i := range p.Contracts {
		c := p.Contracts[i].After
		o.placed++
		o.unplaced -= c.Spec.GPUs.Count
		o.hourly += c.Spec.Price.Hourly.Float()
	}
	if again := planner.Decide(func() planner.World { w.Ledger = w.Ledger.With(p.LedgerChanges()); return w }()); again.Changes() {
		t.Errorf("planning again changes: %v", again.Summary())
	}
	return o
}

// known are policies that are in use elsewhere: each request in an order takes
// the cheapest offer that has room.
var known = []struct {
	name string
	// order of the requests, nil for that of arrival: what brokers do that look at one request at a time.
	order func(in *instance, a, b int) int
}{
	{"in order of arrival", nil},
	{"biggest first", func(in *instance, a, b int) int { return cmp.Compare(in.requests[b].gpus, in.requests[a].gpus) }},
	{"fewest choices first", func(in *instance, a, b int) int {
		return cmp.Or(cmp.Compare(in.choices(a), in.choices(b)), cmp.Compare(in.requests[b].gpus, in.requests[a].gpus))
	}},
}

// choices counts the offers that would hold a request.
func (in *instance) choices(i int) (n int) {
	for k := range in.offers {
		if in.requests[i].fits(&in.offers[k]) {
			n++
		}
	}
	return n
}

// inTurn serves one request after the other, each the cheapest that has room.
func (in *instance) inTurn(order func(in *instance, a, b int) int) outcome {
	free := make([]offer, len(in.offers))
	copy(free, in.offers)
	o := outcome{unplaced: in.demand()}
	turns := make([]int, len(in.requests))
	for i := range turns {
		turns[i] = i
	}
	if order != nil {
		slices.SortStableFunc(turns, func(a, b int) int { return order(in, a, b) })
	}
	for _, i := range turns {
		q := &in.requests[i]
		best := -1
		for j := range free {
			if q.fits(&free[j]) && (best < 0 || free[j].microPerGPU < free[best].microPerGPU) {
				best = j
			}
		}
		if best < 0 {
			continue
		}
		b := &free[best]
		b.gpus, b.milli, b.ram = b.gpus-q.gpus, b.milli-q.milli, b.ram-q.ram
		o.placed++
		o.unplaced -= q.gpus
		o.hourly += float64(b.microPerGPU*q.gpus) / 1e6
	}
	return o
}

func TestBatchesAreNearlyOptimal(t *testing.T) {
	for _, c := range []struct {
		seed             int64
		requests, offers int
		full, overload   bool
	}{
		{1, 50, 60, false, false},
		{29, 50, 60, false, false}, // 0.65 % above, before batches were ruined and recreated
		{1, 200, 150, false, false},
		{2, 200, 150, false, false},
		{3, 200, 150, false, false},
		{6, 200, 150, false, false},  // 0.54 %
		{19, 200, 150, false, false}, // 0.61 %
		{1, 500, 300, true, false},
		{2, 500, 300, true, false},
		{1, 1000, 600, true, false},
		{3, 1000, 600, true, false}, // 0.68 %, before looks were kept for ruins
		{1, 1000, 300, true, true},
	} {
		t.Run(fmt.Sprintf("%dx%d/%d", c.requests, c.offers, c.seed), func(t *testing.T) {
			if c.full && !*full {
				return // minutes of cbc: make test-full
			}
			in := draw(t, c.seed, c.requests, c.offers)
			best := in.solve(t, 10*time.Minute)
			cost, balanced := in.decide(t, v1alpha1.Cost), in.decide(t, v1alpha1.Balanced)
			above := func(o outcome) float64 { return o.cost()/best.cost - 1 }
			t.Logf("%d pairs; demand %d of %d GPUs; optimum %.2f/h (bound %.2f)", in.pairs(), in.demand(), in.supply(), best.cost, best.bound)
			show := func(name string, o outcome) {
				t.Logf("%-20s %+7.3f %%: placed %d, %d GPUs unplaced, %.2f/h; %s", name, 100*above(o), o.placed, o.unplaced, o.hourly, o.took.Round(time.Millisecond))
			}
			show("the optimum", best.outcome)
			show("cost", cost)
			show("balanced", balanced)
			for _, k := range known {
				show(k.name, in.inTurn(k.order))
			}
			if cost.cost() < best.bound-0.01 {
				t.Fatalf("the planner's %.2f is below the bound %.2f: it counts otherwise", cost.cost(), best.bound)
			}
			if in.supply() > in.demand() != !c.overload {
				t.Fatalf("supply %d, demand %d", in.supply(), in.demand())
			}
			if !c.overload && best.proven && above(cost) > promised {
				t.Errorf("%.3f %% above the optimum, promised %.1f %%", 100*above(cost), 100*promised)
			}
		})
	}
}

// Where demand is several times the supply, replicas lose their places to
// others while a batch is repaired: what stands in the end must stand when it
// is planned again.
func TestScarceBatchesSettle(t *testing.T) {
	for seed := range int64(12) {
		in := draw(t, seed, 150, 40)
		o := in.decide(t, v1alpha1.Cost)
		if turn := in.inTurn(nil); o.cost() > turn.cost() {
			t.Errorf("seed %d: %.2f, and in order of arrival %.2f", seed, o.cost(), turn.cost())
		}
	}
}

// What a batch takes to plan: of the trace's requests, of which many are equal,
// and of as many that all differ.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct{ requests, offers int }{{50, 60}, {200, 150}, {500, 300}, {1000, 300}, {1000, 600}, {3000, 1500}} {
		for _, differ := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%d/differ=%t", c.requests, c.offers, differ), func(b *testing.B) {
				in := draw(b, 1, c.requests, c.offers)
				for i := range in.requests {
					if differ {
						in.requests[i].milli += int64(i)
					}
				}
				for b.Loop() {
					planner.Decide(in.world(v1alpha1.Cost))
				}
			})
		}
	}
}
