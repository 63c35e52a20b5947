package quality

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

// stay is when a request comes and goes, in seconds.
type stay struct{ from, to int64 }

// stays draws when the requests come, one by one, and how long each stays:
// exponential, so that about so many are there at a time.
func (in *instance) stays(seed int64, at int) []stay {
	rnd := rand.New(rand.NewSource(seed))
	const mean = 6 * 3600.0
	out := make([]stay, len(in.requests))
	now := 0.0
	for i := range out {
		now += rnd.ExpFloat64() * mean / float64(at)
		out[i] = stay{int64(now), int64(now) + 600 + int64(rnd.ExpFloat64()*mean)}
	}
	return out
}

// writeStays writes the program of somebody who knows beforehand who will come
// and go: request i is placed on offer j for all of its time (x_i_j) or never
// (u_i), and whenever somebody comes, what is on an offer fits.
//
//	min  Σ hours_i·(price_j·gpus_i·x_i_j + 100·gpus_i·u_i)
func (in *instance) writeStays(to io.Writer, stays []stay) error {
	w := bufio.NewWriter(to)
	hours := func(i int) float64 { return float64(stays[i].to-stays[i].from) / 3600 }
	fmt.Fprint(w, "Minimize\n obj:")
	for i := range in.requests {
		q := &in.requests[i]
		fmt.Fprintf(w, "\n + %.9f u_%d", hours(i)*float64(unplaced*q.gpus), i)
		for j := range in.offers {
			if q.fits(&in.offers[j]) {
				fmt.Fprintf(w, "\n + %.9f x_%d_%d", hours(i)*float64(in.offers[j].microPerGPU*q.gpus)/1e6, i, j)
			}
		}
	}
	fmt.Fprint(w, "\nSubject To\n")
	for j := range in.offers {
		o := &in.offers[j]
		for at := range in.requests {
			if !in.requests[at].fits(o) {
				continue // who comes changes nothing here
			}
			for _, limit := range []struct {
				name  string
				most  float64
				takes func(*request) float64
			}{
				{"gpus", float64(o.gpus), func(q *request) float64 { return float64(q.gpus) }},
				{"cpu", float64(o.milli) / 1000, func(q *request) float64 { return float64(q.milli) / 1000 }},
				{"ram", float64(o.ram) / (1 << 30), func(q *request) float64 { return float64(q.ram) / (1 << 30) }},
			} {
				fmt.Fprintf(w, " %s_%d_%d:", limit.name, j, at)
				for i := range at + 1 {
					if q := &in.requests[i]; stays[i].to > stays[at].from && q.fits(o) {
						fmt.Fprintf(w, "\n + %.9f x_%d_%d", limit.takes(q), i, j)
					}
				}
				fmt.Fprintf(w, " <= %.9f\n", limit.most)
			}
		}
	}
	for i := range in.requests {
		fmt.Fprintf(w, " all_%d: u_%d", i, i)
		for j := range in.offers {
			if in.requests[i].fits(&in.offers[j]) {
				fmt.Fprintf(w, "\n + x_%d_%d", i, j)
			}
		}
		fmt.Fprint(w, " = 1\n")
	}
	fmt.Fprint(w, "Binary\n")
	for i := range in.requests {
		fmt.Fprintf(w, " u_%d\n", i)
		for j := range in.offers {
			if in.requests[i].fits(&in.offers[j]) {
				fmt.Fprintf(w, " x_%d_%d\n", i, j)
			}
		}
	}
	fmt.Fprint(w, "End\n")
	return w.Flush()
}

// live runs the requests through a policy as they come and go.
func (in *instance) live(t testing.TB, stays []stay, policy string, consolidation v1alpha1.Consolidation) *simulate.Outcome {
	t.Helper()
	table := &market.Table{}
	known := map[string]bool{}
	for i := range in.offers {
		f := in.offers[i].flavor
		table.Flavors = append(table.Flavors, f)
		if name := f.Metadata.Namespace; !known[name] {
			known[name] = true
			table.Clusters = append(table.Clusters, &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ClusterSpec{Roles: []string{"provider"}}})
		}
	}
	var rows []market.Demand
	for i := range in.requests {
		q := &in.requests[i]
		rows = append(rows, market.Demand{
			Name: fmt.Sprintf("i%05d", i), CPU: v1alpha1.AmountOf(q.milli), Memory: v1alpha1.AmountOf(q.ram), GPUs: q.gpus, MilliGPU: 1000,
			Models: q.models, Created: stays[i].from, Deleted: stays[i].to,
		})
	}
	r, err := simulate.Run(simulate.Options{
		Offers: table, Demand: rows, Policies: []string{policy}, Objective: v1alpha1.Cost, Queue: "fail",
		Fleet: &v1alpha1.FleetSpec{Currency: "USD", Timezone: "UTC", Consolidation: consolidation}, Penalty: v1alpha1.DecimalFromInt(unplaced),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &r.Policies[0]
}

// Intents come one by one and go again. Nobody knows who will come, so that the
// optimum is that of hindsight; consolidation brings the planner nearer to it,
// or below, because the optimum moves nobody.
func TestOnlineArrivals(t *testing.T) {
	threshold := v1alpha1.MustDecimal("0.1")
	apply := v1alpha1.Consolidation{Mode: "apply", Threshold: &threshold, Hold: v1alpha1.Duration{Duration: time.Minute}}
	for seed := int64(1); seed <= 3; seed++ {
		if seed > 1 && !*full {
			break // make test-full
		}
		in := draw(t, seed, 120, 25)
		stays := in.stays(seed, 40)
		best, _ := cbc(t, 10*time.Minute, func(w io.Writer) error { return in.writeStays(w, stays) })
		show := func(name string, o *simulate.Outcome) float64 {
			cost := o.CostWithPenalty.Float()
			t.Logf("seed %d %-16s %9.2f, %+7.2f %%: placed %d of %d, %s for what was placed, %d moves", seed, name, cost, 100*(cost/best.cost-1), o.Placed, o.Arrived, o.Cost.Text(), o.Moved)
			return cost
		}
		t.Logf("seed %d optimum with hindsight %.2f (bound %.2f, %s)", seed, best.cost, best.bound, best.took.Round(time.Second))
		show("cheapest first", in.live(t, stays, "cheapest-first", v1alpha1.Consolidation{}))
		alone := in.live(t, stays, simulate.Planner, v1alpha1.Consolidation{})
		moving := in.live(t, stays, simulate.Planner, apply)
		if without, with := show("planner", alone), show("and consolidation", moving); with >= without || moving.Moved == 0 {
			t.Errorf("seed %d: consolidation makes %d moves and %.2f of %.2f", seed, moving.Moved, with, without)
		}
		if cost := alone.CostWithPenalty.Float(); cost < best.bound*0.999 {
			t.Errorf("seed %d: %.2f without moves is below the bound %.2f: one of both counts otherwise", seed, cost, best.bound)
		}
	}
}
