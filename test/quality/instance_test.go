package quality

import (
	"encoding/csv"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// unplaced is what a GPU without a place counts for, an hour.
const unplaced = 100

// models gives each model of the trace one that is sold.
var models = map[string]string{
	"T4": "L4", "G2": "T4", "P100": "RTXPRO6000", "V100M16": "A100", "V100M32": "A100-80GB", "A10": "A10G", "G3": "H100",
}

// offer is so many GPUs of a kind with what of cores and memory goes with them.
type offer struct {
	flavor      *v1alpha1.Flavor
	model       string
	cardMemory  v1alpha1.Amount
	gpus        int64
	milli, ram  int64 // thousandths of cores, bytes
	microPerGPU int64 // of USD, an hour
}

// request is one intent.
type request struct {
	milli, ram int64
	gpus       int64
	models     []string
}

// fits reports whether an offer is acceptable and would hold the request if
// nothing else did.
func (q *request) fits(o *offer) bool {
	if q.gpus > o.gpus || q.milli > o.milli || q.ram > o.ram {
		return false
	}
	for _, m := range q.models {
		if size := gpunames.Named(m); gpunames.Match(m, o.model) && (size.IsZero() || size == o.cardMemory) {
			return true // a size in the name is asked for too
		}
	}
	return len(q.models) == 0
}

type instance struct {
	offers   []offer
	requests []request
}

// draw makes an instance of so many requests and offers.
func draw(t testing.TB, seed int64, requests, offers int) *instance {
	t.Helper()
	rnd := rand.New(rand.NewSource(seed))
	in := &instance{}
	kinds := readOffers(t)
	for i := range offers {
		if i%len(kinds) == 0 {
			rnd.Shuffle(len(kinds), func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })
		}
		o := kinds[i%len(kinds)]
		n := int64(1 + rnd.Intn(4))
		f := *o.flavor
		f.Metadata.Name = fmt.Sprintf("%s-%d", f.Metadata.Name, i)
		f.Spec.Partition = nil // parts of machines are sold
		f.Spec.Capacity = v1alpha1.Resources{}
		for name, a := range o.flavor.Spec.Capacity {
			f.Spec.Capacity[name] = a.Mul(n)
		}
		o.flavor, o.gpus, o.milli, o.ram = &f, o.gpus*n, o.milli*n, o.ram*n
		in.offers = append(in.offers, o)
	}
	one, several := readPods(t)
	for range requests {
		from := one
		if rnd.Intn(100) < 35 {
			from = several
		}
		in.requests = append(in.requests, from[rnd.Intn(len(from))])
	}
	return in
}

// demand and supply in GPUs.
func (in *instance) demand() (n int64) {
	for i := range in.requests {
		n += in.requests[i].gpus
	}
	return n
}

func (in *instance) supply() (n int64) {
	for i := range in.offers {
		n += in.offers[i].gpus
	}
	return n
}

// pairs counts which requests would fit which offers.
func (in *instance) pairs() (n int) {
	for i := range in.requests {
		for k := range in.offers {
			if in.requests[i].fits(&in.offers[k]) {
				n++
			}
		}
	}
	return n
}

// readOffers reads the kinds of machine that have whole GPUs and a price, in USD.
func readOffers(t testing.TB) []offer {
	t.Helper()
	f, err := os.Open("testdata/offers.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := market.ReadCSV(f, "")
	if err != nil {
		t.Fatal(err)
	}
	var out []offer
	for _, fl := range table.Flavors {
		g, p := fl.Spec.GPU, fl.Spec.Price
		if g == nil || p == nil || g.UnitsPerGPU != 1 || p.PerHour["gpu"].Sign() == 0 {
			continue
		}
		price := *p
		price.Spot = nil
		if p.Currency == "CNY" {
			price.PerHour = v1alpha1.UnitPrices{"gpu": p.PerHour["gpu"].Div(v1alpha1.MustDecimal("7.15"), 12)}
			price.Currency = "USD"
		}
		c := *fl
		c.Spec.Price = &price
		r := fl.Spec.Capacity
		out = append(out, offer{
			flavor: &c, model: g.Model, cardMemory: g.Memory.Amount, gpus: r[v1alpha1.GPU].Int64(), milli: r[v1alpha1.CPU].Int64(), ram: r[v1alpha1.Memory].Int64(),
			microPerGPU: price.PerHour["gpu"].Micro(),
		})
	}
	return out
}

// readPods reads the requests of one GPU and those of several. A share of a GPU
// is a whole one here.
func readPods(t testing.TB) (one, several []request) {
	t.Helper()
	f, err := os.Open("testdata/pods.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, row := range rows[1:] {
		q := request{milli: number(row[1]), ram: number(row[2]) << 20, gpus: number(row[3])}
		for _, m := range strings.FieldsFunc(row[5], func(r rune) bool { return r == '|' }) {
			if models[m] == "" {
				t.Fatalf("the trace names %s, of which nothing is known", m)
			}
			q.models = append(q.models, models[m])
		}
		if q.gpus == 1 {
			one = append(one, q)
		} else {
			several = append(several, q)
		}
	}
	return one, several
}

// world is the instance as the planner sees it: one commit of intents.
func (in *instance) world(objective v1alpha1.Objective) planner.World {
	w := planner.World{
		Now: v1alpha1.TimeOf(start), Fleet: &v1alpha1.FleetSpec{Currency: "USD", Timezone: "UTC", Limits: v1alpha1.Limits{Contracts: 1 << 20}}, FleetName: "quality",
		Clusters: map[string]*v1alpha1.Cluster{"home": {Metadata: v1alpha1.Metadata{Name: "home"}, Spec: v1alpha1.ClusterSpec{Roles: []string{"consumer"}}}},
		Tenants:  map[string]*v1alpha1.Tenant{"lab": {Metadata: v1alpha1.Metadata{Name: "lab"}, Spec: v1alpha1.TenantSpec{Consumers: []string{"home"}}}},
		Inputs:   "c0ffee", Ledger: ledger.Empty(), Market: "market",
	}
	for i := range in.offers {
		f := in.offers[i].flavor
		name := f.Metadata.Namespace
		w.Clusters[name] = &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.ClusterSpec{Roles: []string{"provider"}}}
		w.Offers = append(w.Offers, &model.Offer{Flavor: f, Price: f.Spec.Price, Location: f.Spec.Location})
	}
	for i := range in.requests {
		q := &in.requests[i]
		name := fmt.Sprintf("i%05d", i)
		w.Intents = append(w.Intents, &model.Intent{
			ResourceIntent: &v1alpha1.ResourceIntent{
				Metadata: v1alpha1.Metadata{Name: name, Namespace: "lab"},
				Spec: v1alpha1.IntentSpec{Objective: objective, Resources: v1alpha1.ResourceRequest{
					GPU:   &v1alpha1.GPURequest{Count: int32(q.gpus), Models: q.models},
					Named: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(q.milli), v1alpha1.Memory: v1alpha1.AmountOf(q.ram)},
				}},
			},
			Path: "intents/lab/" + name + ".yaml", Digest: name, Commit: "c0ffee",
		})
	}
	return w
}
