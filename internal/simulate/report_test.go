package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// overload is a fleet of eight cards on which one tenant asks for much and one for little.
func overload(t *testing.T, fair string) *Result {
	t.Helper()
	offers, err := market.ReadCSV(strings.NewReader("provider,region,zones,instance_type,gpu_model,gpu_count,gpu_mem_gib,vcpus,mem_gib,count,price_ondemand_hour,price_spot_hour,currency\nparis,eu,,l4,L4,4,24,48,192,1,2.00,,EUR\nmilan,eu,,l4,L4,4,24,48,192,1,3.00,,EUR\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,tenant\n")
	for i := range 30 {
		at := i * 600
		fmt.Fprintf(&b, "big%d,1000,1024,4,1000,,%d,%d,bulk\n", i, at, at+7200)
		if i%3 == 0 {
			fmt.Fprintf(&b, "small%d,1000,1024,4,1000,,%d,%d,alpha\n", i, at+60, at+60+7200)
		}
	}
	fmt.Fprintf(&b, "never,1000,1024,4,1000,H100,%d,%d,alpha\n", 100, 9000)
	demand, err := market.ReadDemand(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Offers: offers, Demand: demand, Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Fair: fair, Penalty: v1alpha1.DecimalFromInt(100), Until: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Fairness gives a small tenant turns that a large one waits for, and the report says by how
// much; without it turns go by age.
func TestFair(t *testing.T) {
	r := overload(t, "both")
	if len(r.Policies) != 2 || r.Policies[0].Policy != Planner || r.Policies[1].Policy != InOrder {
		t.Fatalf("%d policies", len(r.Policies))
	}
	wait := func(o *Outcome, tenant string) int64 {
		i := slices.IndexFunc(o.Fairness.Tenants, func(x TenantOutcome) bool { return x.Tenant == tenant })
		return o.Fairness.Tenants[i].Wait.P90
	}
	fair, not := &r.Policies[0], &r.Policies[1]
	if wait(fair, "alpha") >= wait(not, "alpha") || wait(fair, "bulk") <= wait(not, "bulk") {
		t.Errorf("alpha waits %d and without fairness %d, bulk %d and %d", wait(fair, "alpha"), wait(not, "alpha"), wait(fair, "bulk"), wait(not, "bulk"))
	}
	said := strings.Join(Sentences(r), "\n")
	for _, want := range []string{
		"alpha, which asked for", "gains most: its p90 wait is " + span(wait(fair, "alpha")) + " and not " + span(wait(not, "alpha")),
		"bulk, which asked for", "pays most: its p90 wait is " + span(wait(fair, "bulk")) + " and not " + span(wait(not, "bulk")),
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said:\n%s", want, said)
		}
	}
	if off := overload(t, "off"); len(off.Policies) != 1 || off.Policies[0].Policy != InOrder || off.Policies[0].Wait != not.Wait {
		t.Errorf("off: %+v", off.Policies)
	}
	if _, err := Run(Options{Offers: &market.Table{}, Fair: "maybe"}); err == nil {
		t.Error("an unknown value is taken")
	}
}

// What is used and paid adds up: flavors to providers, providers and tenants to all of it.
func TestUsesAddUp(t *testing.T) {
	r := overload(t, "")
	o := &r.Policies[0]
	var flavors, providers, tenants v1alpha1.Decimal
	var used float64
	for _, u := range o.Flavors {
		flavors = flavors.Add(u.Cost)
		used += u.Mean * u.GPUs
	}
	for _, u := range o.Providers {
		providers = providers.Add(u.Cost)
	}
	for _, x := range o.Fairness.Tenants {
		tenants = tenants.Add(x.Cost)
	}
	if o.Cost.IsZero() || flavors.Cmp(o.Cost) != 0 || providers.Cmp(o.Cost) != 0 || tenants.Cmp(o.Cost) != 0 {
		t.Errorf("cost %s; flavors %s, providers %s, tenants %s", o.Cost, flavors, providers, tenants)
	}
	if mean := used / o.GPU.Total; len(o.Flavors) != 2 || mean < o.GPU.AllocationMean-0.001 || mean > o.GPU.AllocationMean+0.001 {
		t.Errorf("mean use %f, of flavors %f", o.GPU.AllocationMean, mean)
	}
	if len(o.Never) != 1 || o.Never[0].N != 1 || o.Never[0].Tenant != "alpha" || o.Never[0].Asks() != "4 GPUs (H100), 1 CPU, 1Gi memory" || !strings.Contains(o.Never[0].Because(), "model") || o.Never[0].Waited != 200_000-100 {
		t.Errorf("never placed: %+v", o.Never)
	}
}

// The report draws cost without the penalty, dates, whole intents, and no line on another.
func TestReport(t *testing.T) {
	r := overload(t, "both")
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"Use by provider", "Use by flavor", "(intents ask: ", "paris-eu/l4", "The penalty is no cost", "<h2>Never placed</h2>", "most offers have another GPU model", "2026-01-05 00:00", ">5 Jan"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	cost, penalty := r.Policies[0].Cost, r.Policies[0].Penalty()
	if penalty.IsZero() || !strings.Contains(text, ">"+short(cost.Float())+" (&#43;"+short(penalty.Float())+")<") && !strings.Contains(text, ">"+short(cost.Float())+" (+"+short(penalty.Float())+")<") {
		t.Errorf("the bar of the cost is not of %s with %s next to it", cost, penalty)
	}
	same := together([]line{{name: "a", x: []float64{1, 2}, y: []float64{3, 4}}, {name: "b", x: []float64{1, 2}, y: []float64{3, 5}}, {name: "c", x: []float64{1, 2}, y: []float64{3, 4}}})
	if len(same) != 2 || same[0].name != "a = c" {
		t.Errorf("%+v", same)
	}
	// A policy has its colour in each chart, also where others before it are one line.
	drawn := string(chart(together([]line{{name: "a", x: []float64{1, 2}, y: []float64{3, 4}}, {name: "b", x: []float64{1, 2}, y: []float64{3, 4}, colour: 1}, {name: "c", x: []float64{1, 2}, y: []float64{3, 5}, colour: 2}}), axis{}, axis{}))
	if strings.Contains(drawn, colours[1]) || strings.Count(drawn, colours[2]) != 2 {
		t.Errorf("the third policy is not drawn, and named, in its colour: %s", drawn)
	}
	// Bars of one length would be read as a finding.
	if got := string(bars([]bar{{"best-fit", 3, "3"}, {"fgd", 3, "3"}})); strings.Contains(got, "<svg") || !strings.Contains(got, "<strong>3</strong> under each policy.") {
		t.Errorf("equal bars are drawn: %s", got)
	}
	if got := string(bars([]bar{{"best-fit", 3, "3"}, {"fgd", 2, "2"}})); strings.Count(got, "<rect") != 2 {
		t.Errorf("two bars: %s", got)
	}
}

// Ticks are figures that people count in.
func TestTicks(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	dates := axis{dates: func(x float64) time.Time { return start.Add(time.Duration(x) * time.Second) }}
	for name, tc := range map[string]struct {
		a        axis
		from, to float64
		want     string
	}{
		"numbers": {axis{}, 0, 250, "0 50 100 150 200 250"},
		"whole":   {axis{whole: true}, 0, 3, "0 1 2 3"},
		"hours":   {dates, 0, 6 * 3600, "00:00 01:00 02:00 03:00 04:00 05:00 06:00"},
		"weeks":   {dates, 0, 29 * 86400, "8 Jan 15 Jan 22 Jan 29 Jan"},
		"a month": {dates, 3600, 5 * 86400, "6 Jan 7 Jan 8 Jan 9 Jan 10 Jan"},
	} {
		var got []string
		for _, x := range tc.a.ticks(tc.from, tc.to) {
			got = append(got, x.text)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if text := string(chart([]line{{name: "a", x: []float64{0, 1}, y: []float64{0, 250}}}, axis{}, axis{whole: true})); strings.Contains(text, "62.5") || !strings.Contains(text, ">150<") {
		t.Error("intents are counted in parts")
	}
}

// Nor is one that is compared.
func TestSentences_FairnessWithoutWaits(t *testing.T) {
	of := func(policy string, p90 int64) Outcome {
		return Outcome{Policy: policy, Arrived: 100, Placed: 100, Wait: Percentiles{Waited: 5, P90: p90, P99: 7200, Max: 7200}, Fairness: Fairness{Tenants: []TenantOutcome{{Tenant: "nlp"}, {Tenant: "vision"}}}}
	}
	for want, p90 := range map[string][2]int64{
		"Nine in ten of those placed did not wait, nor did they under planner, fair off: on the whole fairness cost no waiting in this run.":                       {0, 0},
		"Nine in ten of those placed did not wait, where one in ten waited 1h or more under planner, fair off: on the whole fairness cost no waiting in this run.": {0, 3600},
		"One in ten of those placed waited 1h or more, where nine in ten did not wait under planner, fair off: the price of fairness in this run.":                 {3600, 0},
		"One in ten of those placed waited 1h or more, against 2h under planner, fair off: on the whole fairness cost no waiting in this run.":                     {3600, 7200},
	} {
		got := strings.ReplaceAll(strings.Join(Sentences(&Result{Policies: []Outcome{of(Planner, p90[0]), of(InOrder, p90[1])}}), "\n"), ".0h", "h")
		if !strings.Contains(got, want) || strings.Contains(got, "0s") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A wait of nothing is no wait: what one in ten waited is told where that is more.
func TestSentences_FewWaited(t *testing.T) {
	said := func(w Percentiles) string {
		return strings.Join(Sentences(&Result{Policies: []Outcome{{Policy: Planner, Arrived: 100, Placed: 100, Wait: w}}}), "\n")
	}
	for want, w := range map[string]Percentiles{
		"placed 100 of 100 intents, none of which waited":                    {},
		"; nine in ten of them did not wait, the longest waited 2m":          {Waited: 5, P99: 60, Max: 120},
		"; at least half of them did not wait, one in ten waited 1m or more": {Waited: 20, P90: 60, P99: 60, Max: 120},
		"; half of them waited 1m or less, one in ten 1m or more":            {Waited: 60, P50: 60, P90: 60, P99: 60, Max: 120},
	} {
		if got := said(w); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
