package market_test

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// TestReportsAreBounded: each mistake refuses the whole report, names itself
// and leaves the market as it was.
func TestReportsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 400)
	cases := map[string]struct {
		change func(f *v1alpha1.Flavor)
		want   string
	}{
		"another cluster's":       {func(f *v1alpha1.Flavor) { f.Metadata.Namespace = "oslo" }, "another cluster"},
		"no name":                 {func(f *v1alpha1.Flavor) { f.Metadata.Name = "" }, "is not a name"},
		"a path for a name":       {func(f *v1alpha1.Flavor) { f.Metadata.Name = "../x" }, "is not a name"},
		"a name that is too long": {func(f *v1alpha1.Flavor) { f.Metadata.Name = strings.Repeat("a", 64) }, "is not a name"},
		"negative capacity":       {func(f *v1alpha1.Flavor) { f.Spec.Capacity["gpu"] = v1alpha1.AmountOf(-1) }, "spec.capacity.gpu"},
		"absurd capacity":         {func(f *v1alpha1.Flavor) { f.Spec.Capacity["gpu"] = v1alpha1.AmountOf(1 << 61) }, "spec.capacity.gpu"},
		"negative use":            {func(f *v1alpha1.Flavor) { f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(-1)} }, "spec.used.gpu"},
		"a resource with spaces":  {func(f *v1alpha1.Flavor) { f.Spec.Capacity["a b"] = v1alpha1.AmountOf(1) }, "resource's name"},
		"too many resources": {func(f *v1alpha1.Flavor) {
			for i := range 100 {
				f.Spec.Capacity[fmt.Sprint("r", i)] = v1alpha1.AmountOf(1)
			}
		}, "at most 64"},
		"a contract that is none": {func(f *v1alpha1.Flavor) { f.Spec.Held = map[string]v1alpha1.Resources{"A/B": {}} }, "contract's name"},
		"negative held": {func(f *v1alpha1.Flavor) {
			f.Spec.Held = map[string]v1alpha1.Resources{"a": {"gpu": v1alpha1.AmountOf(-1)}}
		}, "spec.held.a.gpu"},
		"a refusal of no contract":   {func(f *v1alpha1.Flavor) { f.Spec.Refused = map[string]string{"A/B": "no"} }, "spec.refused"},
		"a refusal without a reason": {func(f *v1alpha1.Flavor) { f.Spec.Refused = map[string]string{"a": ""} }, "spec.refused"},
		"a refusal that rings":       {func(f *v1alpha1.Flavor) { f.Spec.Refused = map[string]string{"a": "no\x07"} }, "spec.refused"},
		"a refusal without end":      {func(f *v1alpha1.Flavor) { f.Spec.Refused = map[string]string{"a": strings.Repeat(long, 9)} }, "spec.refused"},
		"too many contracts": {func(f *v1alpha1.Flavor) {
			f.Spec.Held = map[string]v1alpha1.Resources{}
			for i := range 5001 {
				f.Spec.Held[fmt.Sprint("c", i)] = nil
			}
		}, "at most 5000"},
		"negative step": {func(f *v1alpha1.Flavor) {
			f.Spec.Partition = &v1alpha1.Partition{Step: v1alpha1.Resources{"gpu": v1alpha1.AmountOf(-1)}}
		}, "partition.step"},
		"absurd overcommit":    {func(f *v1alpha1.Flavor) { f.Spec.Overcommit = v1alpha1.Overcommit{"gpu": dec("1000")} }, "overcommit"},
		"a risk above certain": {func(f *v1alpha1.Flavor) { f.Spec.Overcommit = v1alpha1.Overcommit{"maxRisk": dec("2")} }, `"maxRisk": a ratio from 0 to 1`},
		"a drain after the years": {func(f *v1alpha1.Flavor) {
			f.Spec.Drain = v1alpha1.TimeOf(time.Date(10000, 1, 1, 11, 59, 59, 0, time.UTC))
		}, "spec.drain: the year 10000"},
		"a drain before the years": {func(f *v1alpha1.Flavor) {
			f.Spec.Drain = v1alpha1.TimeOf(time.Date(-1, 12, 31, 12, 0, 0, 0, time.UTC))
		}, "spec.drain: the year -1"},
		"a negative term": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{Reserved: &v1alpha1.ReservedPrice{Term: v1alpha1.Duration{Duration: -1}, UnitPrices: v1alpha1.UnitPrices{"gpu": dec("1")}}}
		}, "spec.price.reserved.term"},
		"negative latency": {func(f *v1alpha1.Flavor) {
			n := int64(math.MinInt64)
			f.Spec.Properties.LatencyMs = &n
		}, "spec.properties.latencyMs: -9223372036854775808 is less than 0"},
		"negative carbon": {func(f *v1alpha1.Flavor) {
			n := int64(-1)
			f.Spec.Properties.Carbon = &n
		}, "spec.properties.carbon: -1 is less than 0"},
		"reliability below nothing": {func(f *v1alpha1.Flavor) {
			d := dec("-5")
			f.Spec.Properties.Reliability = &d
		}, "spec.properties.reliability: -5 is not between 0 and 1"},
		"a standard that hides the screen": {func(f *v1alpha1.Flavor) {
			f.Spec.Properties.SecurityStandards = []string{"SOC2", "ISO\u202e27001\x1b[2J"}
		}, `spec.properties.securityStandards[1]: "ISO\u202e27001\x1b[2J": only plain ASCII`},
		"a standard without a name": {func(f *v1alpha1.Flavor) { f.Spec.Properties.SecurityStandards = []string{""} }, "spec.properties.securityStandards[0] is empty"},
		"standards without end":     {func(f *v1alpha1.Flavor) { f.Spec.Properties.SecurityStandards = slices.Repeat([]string{"x"}, 257) }, "257 entries, and at most 256"},
		"standards by the million":  {func(f *v1alpha1.Flavor) { f.Spec.Properties.SecurityStandards = slices.Repeat([]string{"x"}, 500_001) }, "in one report"},
		"negative price": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": dec("-1")}}
		}, "price.perHour"},
		"a lower-case euro": {func(f *v1alpha1.Flavor) { f.Spec.Price = &v1alpha1.Price{Currency: "eur"} }, "currency"},
		"a window at 25 h": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "25:00", To: "06:00"}}}}
		}, "time of day"},
		"a window on Funday": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{Days: []string{"Fun"}, From: "20:00", To: "06:00"}}}}
		}, "not a day"},
		"a window on Mars": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "20:00", To: "06:00", Timezone: "Mars/Olympus"}}}}
		}, "timezone"},
		"a timezone outside": {func(f *v1alpha1.Flavor) {
			f.Spec.Price = &v1alpha1.Price{Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "20:00", To: "06:00", Timezone: "../../etc/passwd"}}}}
		}, "timezone"},
		"more on nodes than there is": {func(f *v1alpha1.Flavor) {
			f.Spec.Nodes = &v1alpha1.FlavorNodes{Groups: []v1alpha1.NodeGroup{{Shape: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(8)}, Nodes: []string{"n0000000000001", "n0000000000002"}}}}
		}, "all nodes together have 16 gpu, and spec.capacity has 8"},
		"held on a node by nobody": {func(f *v1alpha1.Flavor) {
			f.Spec.HeldOn = map[string]map[string]v1alpha1.Resources{"c": {"n0000000000001": {}}}
		}, "is not in spec.held"},
		"units without end":               {func(f *v1alpha1.Flavor) { f.Spec.GPU.UnitsPerGPU = 1 << 20 }, "unitsPerGPU"},
		"negative units":                  {func(f *v1alpha1.Flavor) { f.Spec.GPU.UnitsPerGPU = -1 }, "unitsPerGPU"},
		"a model without end":             {func(f *v1alpha1.Flavor) { f.Spec.GPU.Model = long }, "gpu.model"},
		"a city with a line":              {func(f *v1alpha1.Flavor) { f.Spec.Location.City = "a\nb" }, "location.city"},
		"a model that looks like another": {func(f *v1alpha1.Flavor) { f.Spec.GPU.Model = "nvidi\u0430-h100" }, "gpu.model"},
		"a region from right to left":     {func(f *v1alpha1.Flavor) { f.Spec.Location.Region = "eu\u202ewest" }, "location.region"},
		"a pool in full width":            {func(f *v1alpha1.Flavor) { f.Spec.Pool = "\uff48100" }, "pool"},
		"a city that rings":               {func(f *v1alpha1.Flavor) { f.Spec.Location.City = "a\x07" }, "location.city"},
		"a label that looks like another": {func(f *v1alpha1.Flavor) { f.Spec.Labels = map[string]string{"complianc\u0435": "gdpr"} }, "spec.labels"},
		"a label without end":             {func(f *v1alpha1.Flavor) { f.Spec.Labels = map[string]string{"a": strings.Repeat(long, 9)} }, "spec.labels"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := market.New(market.Options{Now: newClock().Now})
			report(t, m, "paris", gen(1, 1), gpus("paris", "good", 8))
			before := m.Snapshot().Generation()
			f := gpus("paris", "bad", 8)
			tc.change(&f)
			err := m.Report("paris", gen(1, 2), []v1alpha1.Flavor{gpus("paris", "fine", 1), f}, true)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
				t.Errorf("%v, want %q in few words", err, tc.want)
			}
			if s := m.Snapshot(); s.Generation() != before || states(s) != "paris/good Fresh" {
				t.Errorf("a refused report left %s", states(s))
			}
		})
	}
	m := market.New(market.Options{Now: newClock().Now})
	if err := m.Report("paris", gen(1, 1), []v1alpha1.Flavor{gpus("paris", "a", 1), gpus("paris", "a", 2)}, true); err == nil {
		t.Error("a name that stands twice was taken")
	}
	if err := m.Report("../paris", gen(1, 1), nil, true); err == nil {
		t.Error("a path was taken for a cluster")
	}
	if err := m.Report("paris", gen(1, 1), make([]v1alpha1.Flavor, 5000), true); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("5,000 flavors: %v", err)
	}
}

// TestReports_AcceptedOnesAreReadBack: what a provider states is refused when it is decoded or
// checked, or the market's tree holds it so that it is read as it was taken.
func TestReports_AcceptedOnesAreReadBack(t *testing.T) {
	long := strings.Repeat("k", 500)
	for name, spec := range map[string]string{
		"drain in the year 10000":  `{"drain":"9999-12-31T23:59:59-12:00"}`,
		"drain before the year 0":  `{"drain":"0000-01-01T00:00:00+12:00"}`,
		"drain in the year 0":      `{"drain":"0000-06-01T00:00:00Z"}`,
		"a term that overflows":    `{"price":{"perHour":{"gpu":"1"},"reserved":{"term":"15251w","gpu":"1"}}}`,
		"a short term":             `{"price":{"perHour":{"gpu":"1"},"reserved":{"term":"1ns","gpu":"1"}}}`,
		"no term":                  `{"price":{"perHour":{"gpu":"1"},"reserved":{"gpu":"1"}}}`,
		"no reserved price":        `{"price":{"perHour":{"gpu":"1"},"reserved":{}}}`,
		"small prices":             `{"price":{"flat":"0.000000000000000001","perHour":{"true":"999999999.999999999999999999","term":"1"}}}`,
		"windows":                  `{"price":{"windows":[{"from":"00:00","to":"24:00","days":[],"perHour":null},{"from":"00:00","to":"24:00","timezone":"utc","perHour":{"gpu":1}}]}}`,
		"memory in Ti":             `{"gpu":{"model":"x","memory":"2048GB"}}`,
		"memory in bytes":          `{"gpu":{"model":"x","memory":"0.333Gi"}}`,
		"memory in Ki":             `{"gpu":{"model":"x","memory":"1.5Mi"}}`,
		"memory of nothing":        `{"gpu":{"model":"x","memory":"..80GB"}}`,
		"the most there can be":    `{"capacity":{"cpu":"1152921504606846976m","memory":"1Ei","gpu":"8","a/b":"1152921504606846976"}}`,
		"no capacity":              `{"capacity":{}}`,
		"long labels":              `{"labels":{"` + long + `":"` + strings.Repeat("v ---  ", 140) + `"}}`,
		"labels as YAML has marks": `{"labels":{"- a: b #{[&*!|>'\"%@":"---"," ":" ","":"","null":"null","1e3":"~","<<":"x","=":"="}}`,
		"a city in other letters":  `{"location":{"city":"é💥 - : #"}}`,
		"reasons":                  `{"refused":{"null":"~","1e3":"- é💥"}}`,
		"nothing in lists":         `{"held":{"a":null},"usage":{"a":null},"partition":{},"nodes":{},"overcommit":{"maxRisk":"1","cpu":"0.000000000000000001"}}`,
		"properties":               `{"properties":{"latencyMs":9223372036854775807,"carbon":0,"reliability":"0.000000000000000001","securityStandards":["- a","~"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			m, f := market.New(market.Options{Now: newClock().Now}), gpus("paris", "h100", 8)
			if err := json.Unmarshal([]byte(spec), &f.Spec); err != nil {
				return
			}
			if err := m.Report("paris", gen(1, 1), []v1alpha1.Flavor{f}, true); err != nil {
				return
			}
			content, err := m.Snapshot().Tree().ReadFile("paris.yaml", 0)
			if err != nil {
				t.Fatal(err)
			}
			back, err := market.ParseBlob(content)
			if err != nil || len(back) != 1 {
				t.Fatalf("accepted, and read back as %d flavors: %v\n%s", len(back), err, content)
			}
			got, _ := json.Marshal(back[0])
			want, _ := json.Marshal(m.Snapshot().Offer("paris", "h100").Flavor)
			if string(got) != string(want) {
				t.Errorf("read back as\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestReportsTakeLittleMemory: what one provider makes the market keep is bounded,
// also by reports of very many very small entries under names that change.
func TestReportsTakeLittleMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	m := market.New(market.Options{})
	before := heap()
	taken, refused := 0, 0
	for n := range uint64(6) {
		// Some eight mebibytes as JSON: `"c123":{},`.
		list := make([]v1alpha1.Flavor, 0, 200)
		for i := range [...]int{400, 160}[n%2] {
			f := gpus("paris", fmt.Sprintf("f%d-%d", n, i), 1)
			f.Spec.Held = map[string]v1alpha1.Resources{}
			for c := range [...]int{2000, 1100}[n%2] {
				f.Spec.Held[fmt.Sprint("c", c)] = v1alpha1.Resources{}
			}
			list = append(list, f)
		}
		err := m.Report("paris", gen(n+1, 1), list, true)
		switch {
		case err == nil:
			taken++
		case strings.Contains(err.Error(), "report no contract that is gone"):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if taken != 3 || refused != 3 {
		t.Errorf("%d reports were taken and %d refused, want the three of 352,000 entries and not those of 1,600,000", taken, refused)
	}
	if grown := int64(heap()) - int64(before); grown > 128<<20 {
		t.Errorf("one provider makes the market keep %d MiB, want at most 128", grown>>20)
	}
	runtime.KeepAlive(m)
}

func TestReportsAreCleaned(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	f := gpus("paris", "h100", 8)
	f.Spec.GPU = &v1alpha1.FlavorGPU{Model: "NVIDIA-H100-80GB-HBM3"}
	f.Spec.Labels = map[string]string{"fleetbroker.io/tenant": "vision", "compliance": "gdpr"}
	f.Metadata.Annotations = map[string]string{"fleetbroker.io/market-state": "Lost 2026-01-01T00:00:00Z"}
	report(t, m, "paris", gen(1, 1), f)
	got := m.Snapshot().Offer("paris", "h100").Flavor
	if g := got.Spec.GPU; g.Vendor != "nvidia" || g.Model != "nvidia-h100" || g.Memory.Int64() != 80<<30 {
		t.Errorf("GPU %+v", g)
	}
	if len(got.Spec.Labels) != 1 || got.Spec.Labels["compliance"] != "gdpr" || len(got.Metadata.Annotations) != 0 {
		t.Errorf("labels %v, annotations %v: want nothing of our own domain", got.Spec.Labels, got.Metadata.Annotations)
	}
	for i, c := range []struct{ level, want string }{{"Hard", "Hard"}, {"Soft", "Soft"}, {"None", "None"}, {"hard", ""}, {"Strict", ""}} {
		f.Spec.Labels = map[string]string{v1alpha1.LabelEnforcement: c.level}
		report(t, m, "paris", gen(1, uint64(i)+2), f) //nolint:gosec // small
		if got := m.Snapshot().Offer("paris", "h100").Flavor.Spec.Labels[v1alpha1.LabelEnforcement]; got != c.want {
			t.Errorf("limits are enforced at level %q, want %q", got, c.want)
		}
	}
}
