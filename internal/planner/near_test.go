package planner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func TestNear(t *testing.T) {
	b := paris().Provider("berlin", "oslo").
		Offer("berlin/a100", Cards("nvidia-a100", 8, "40Gi"), Costs("1")).
		Offer("oslo/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("2"), In("north", "")).
		Intent("vision/train", Wants(4, "H100"), AtMost("10"))
	p := b.Plan()
	d := Of(p, "vision/train")
	want := planner.Decision{
		Rejected: map[string]int{"budget.maxHourly": 1, "capacity.gpu": 1, "gpu.model": 1},
		Near:     []string{"paris/h100 costs 11.75, budget 10.00", "oslo/h100 has 2 of 4 GPUs free", "berlin/a100 is nvidia-a100"},
		Try: []string{
			"resources.gpu.models: [H100, nvidia-a100]  # 4.00 EUR/h", "resources.gpu.count: 2  # 6.05 EUR/h", `budget.maxHourly: "11.76"  # 11.75 EUR/h`,
		},
	}
	if d.Action != planner.Queued || !slices.Equal(d.Near, want.Near) || !slices.Equal(d.Try, want.Try) {
		t.Fatalf("near %q\ntry %q\n%s", d.Near, d.Try, describe(p))
	}
	for req, n := range want.Rejected {
		if d.Rejected[req] != n {
			t.Errorf("rejected %v", d.Rejected)
		}
	}
	// What is suggested does place it.
	b.Intent("vision/train", AtMost("11.76"))
	if d := Of(b.Plan(), "vision/train"); d.Action != planner.Place || d.Contracts[0].Provider != "paris" {
		t.Fatalf("%+v", d)
	}
}

// Two things wrong are not near.
func TestNearIsOne(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "A100"), AtMost("1"))
	if d := Of(b.Plan(), "vision/train"); len(d.Near) != 0 || len(d.Try) != 0 {
		t.Fatalf("near %q try %q", d.Near, d.Try)
	}
}

func TestExplain(t *testing.T) {
	b := paris().Provider("lyon", "oslo").
		Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("3")).
		Offer("oslo/l40s", Cards("nvidia-l40s", 16, "48Gi"), Costs("1")).
		Intent("vision/train", Wants(4, "H100"), AtMost("40"), Priority(100))
	for _, stage := range []string{"before", "after"} {
		e, err := planner.Explain(b.W, "vision", "train")
		if err != nil {
			t.Fatal(err)
		}
		if e.Wants != "4x nvidia-h100, 8 cpu, 64Gi in rome; <= 40.00 EUR/h; balanced; priority 100" {
			t.Errorf("%s: wants %q", stage, e.Wants)
		}
		if len(e.Offers) != 3 || !e.Offers[0].Chosen || e.Offers[1].Chosen || e.Offers[2].Requirement != "gpu.model" {
			t.Fatalf("%s: %+v", stage, e.Offers)
		}
		if e.Offers[0].Free[v1alpha1.GPU].Int64() != 8 {
			t.Errorf("%s: free %v", stage, e.Offers[0].Free)
		}
		if d := e.Decision; d.Considered != 3 || d.Fitting != 2 || d.Rejected["gpu.model"] != 1 {
			t.Errorf("%s: %+v", stage, d)
		}
		// Explaining decides nothing else than deciding.
		if Of(b.Plan(), "vision/train").Action != e.Decision.Action {
			t.Errorf("%s: %s", stage, e.Decision.Action)
		}
		b.Round()
	}
	if _, err := planner.Explain(b.W, "vision", "nothing"); err == nil {
		t.Fatal("explained an intent that is not")
	}
}

// What a change of a file would fix is before what time may bring.
func TestExplainRanksMistakesFirst(t *testing.T) {
	b := paris().Provider("aachen", "oslo").
		Offer("aachen/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("3")).
		Offer("oslo/l40s", Cards("nvidia-l40s", 16, "48Gi"), Costs("1")).
		Offer("paris/h100", Heard(model.Silent)).
		Intent("vision/train", Wants(4, "H100"))
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range e.Offers {
		got = append(got, l.Requirement)
	}
	if want := []string{"gpu.model", "capacity.gpu", "provider.silent"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
}

// A region that nobody offers is not suggested again beside the one that would do.
func TestNear_RegionOfNobody(t *testing.T) {
	b := paris().Offer("paris/h100", In("north", "")).Intent("vision/train", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Regions = []string{"IT"} }))
	if d := Of(b.Plan(), "vision/train"); len(d.Try) == 0 || !strings.HasPrefix(d.Try[0], "placement.regions: [north]") {
		t.Errorf("try %q", d.Try)
	}
}

// What a suggestion costs is what the whole intent then costs, wherever its replicas are, and
// the cheapest is first; nothing costs nothing where that is what an offer says.
func TestTry_CostsWhatThePlanDoes(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
		Offer("paris/more", Cards("nvidia-h100", 32, "80Gi"), Costs("5")).
		Offer("oslo/a100", Cards("nvidia-a100", 32, "80Gi"), Costs("3")).
		Offer("oslo/l4", Cards("nvidia-l4", 32, "24Gi"), Costs("0")).
		Intent("vision/train", Wants(8, "B200"), Times(3))
	d := Of(b.Plan(), "vision/train")
	want := []string{"resources.gpu.models: [B200, nvidia-l4]  # 0.00 EUR/h", "resources.gpu.models: [B200, nvidia-a100]  # 72.00 EUR/h", "resources.gpu.models: [B200, nvidia-h100]  # 88.00 EUR/h"}
	if !slices.Equal(d.Try, want) {
		t.Fatalf("try %q, want %q", d.Try, want)
	}
	for i, cost := range []string{"0.00", "72.00", "88.00"} {
		card := []string{"nvidia-l4", "nvidia-a100", "nvidia-h100"}[i]
		p := b.Intent("vision/train", Wants(8, card), Times(3)).Plan()
		sum := v1alpha1.Decimal{}
		for _, c := range Of(p, "vision/train").Contracts {
			sum = sum.Add(c.Hourly)
		}
		if sum.Text() != cost {
			t.Errorf("%s: the plan costs %s, want %s", card, sum.Text(), cost)
		}
	}
}

// Of what ends at one instant that is named which makes room where an intent is expected.
func TestExpected_NamesWhatMakesRoom(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
		Offer("oslo/a100", Cards("nvidia-a100", 8, "80Gi"), Costs("1")).
		Intent("vision/a-h100", Wants(8, "H100"), For(2*time.Hour)).
		Intent("vision/z-a100", Wants(8, "A100"), For(2*time.Hour))
	b.Round()
	d := Of(b.Intent("vision/waits", Wants(8, "H100")).Plan(), "vision/waits")
	if !strings.HasSuffix(d.Reason, "when vision/a-h100 ends") {
		t.Errorf("it says %q", d.Reason)
	}
}

// Pods that nobody wrote are what leaves no room for all replicas: that is shown, and what
// would do is tried.
func TestNear_PodsByDefault(t *testing.T) {
	asks := func(named string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) {
			s.Resources.Named, s.Replicas = Amounts(named), v1alpha1.Replicas{Min: 3, Max: 3}
		})
	}
	b := paris().Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.Pods = Ptr(v1alpha1.Quantity("110")) }).
		Offer("paris/h100", Capacity("pods=220")).Intent("vision/train", Wants(1, "H100"), asks("cpu=4 memory=8Gi"))
	d := Of(b.Plan(), "vision/train")
	if want := []string{"paris/h100 has 220 pods free, and 3 replicas have 330, 110 each by the fleet's default"}; d.Action != planner.Queued || !slices.Equal(d.Near, want) {
		t.Errorf("near %q, want %q\n%s", d.Near, want, describe(b.Plan()))
	}
	if len(d.Try) != 1 || !strings.HasPrefix(d.Try[0], "resources.pods: 70  #") {
		t.Errorf("try %q", d.Try)
	}
	b.Intent("vision/train", asks("cpu=4 memory=8Gi pods=70"))
	if d := Of(b.Plan(), "vision/train"); d.Action != planner.Place {
		t.Errorf("what is suggested: %s", d.Action)
	}
	b.Intent("vision/train", asks("cpu=4 memory=8Gi pods=110")) // which somebody wrote
	if d := Of(b.Plan(), "vision/train"); len(d.Near)+len(d.Try) > 0 {
		t.Errorf("near %q, try %q", d.Near, d.Try)
	}
}

// What depends on a cluster whose file cannot be read says that, and not that the cluster
// is to be added.
func TestUnreadableCluster(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "H100"))
	delete(b.W.Clusters, "paris")
	b.W.Frozen = []model.Freeze{{Cluster: "paris", Why: "clusters/paris.yaml:7:45: not a country"}}
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Offers[0].Detail, "the file of cluster paris cannot be read"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b = paris().Intent("vision/train", Wants(4, "H100"))
	delete(b.W.Clusters, "rome")
	b.W.Frozen = []model.Freeze{{Cluster: "rome", Why: "clusters/rome.yaml:1:1: no YAML"}}
	if got, want := Of(b.Plan(), "vision/train").Reason, "the file of cluster rome cannot be read: clusters/rome.yaml:1:1: no YAML"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
