package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// office is a week in which six contracts of one H100 stood from eight to
// five, every day, and it is ten past five in the morning.
func office(forecast func(*v1alpha1.PoolForecast)) *Builder {
	var ch ledger.Changes
	for day := 1; day <= 7; day++ {
		for i := range 6 {
			start := Time("2026-11-20T08:00:00Z").AddDate(0, 0, -day)
			ch.Contracts = append(ch.Contracts, model.Change{After: &v1alpha1.Contract{
				Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("vision-day-%d-%d", day, i), Namespace: "vision"},
				Spec: v1alpha1.ContractSpec{
					Intent: v1alpha1.ContractIntent{Name: "day", Path: "intents/vision/day.yaml"}, Consumer: "rome", Provider: "paris", Flavor: "h100",
					GPUs:  &v1alpha1.ContractGPU{Count: 1, Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: Amounts("memory=80Gi")["memory"]}},
					Price: v1alpha1.ContractPrice{Currency: "EUR"}, Term: v1alpha1.Term{Start: v1alpha1.TimeOf(start)},
				},
				Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReleased, Since: v1alpha1.TimeOf(start.Add(9 * time.Hour))},
			}})
		}
	}
	f := &v1alpha1.PoolForecast{}
	if forecast != nil {
		forecast(f)
	}
	b := paris().Offer("paris/h100", Capacity("gpu=16")).Fleet(func(fleet *v1alpha1.FleetSpec) {
		fleet.Retention.Ended.Duration = 400 * time.Hour
		fleet.WarmPools = []v1alpha1.WarmPool{{Name: "h100-warm", Consumer: "rome", Count: 1, Max: 8, Forecast: f, Resources: v1alpha1.ResourceRequest{
			GPU: &v1alpha1.GPURequest{Count: 1, Models: []string{"H100"}}, Named: Amounts("cpu=16 memory=128Gi pods=50 ephemeral-storage=200Gi"),
		}}}
	})
	b.W.Ledger = b.W.Ledger.With(ch)
	b.W.Now = Time("2026-11-20T05:10:00Z")
	return b
}

// ready is how many slices a pool holds.
func ready(b *Builder) (n int) {
	for _, c := range b.Contracts(pool) {
		if c.Status.Phase.Charged() {
			n++
		}
	}
	return n
}

// A pool is small by night, ready before people come, shrinks by what they
// claim, and is small again when they have gone.
func TestPoolFollowsForecast(t *testing.T) {
	b := office(func(f *v1alpha1.PoolForecast) { f.Ahead.Duration, f.Margin = 2*time.Hour, Money("0") })
	step := func(wanted int) planner.Decision {
		t.Helper()
		p := b.Round()
		wantOnlyKeeps(t, b)
		if got := ready(b); got != wanted {
			t.Fatalf("at %s the pool has %d, want %d\n%s", b.W.Now.Format("15:04"), got, wanted, describe(p))
		}
		deliverBySlice(b.Tick(10 * time.Second)).Round()
		return Of(p, pool)
	}
	if d := step(1); !strings.Contains(d.Reason, "sized by forecast at 2026-11-20T05:10:00Z: at most ") || !strings.HasSuffix(d.Reason, "of which 0 stood; 1 ready, of 1 to 8") {
		t.Fatal(d.Reason)
	}
	if due := b.Plan().Due; !due.Equal(Time("2026-11-20T06:00:00Z").Time) {
		t.Fatalf("due %v", due)
	}
	b.W.Now = Time("2026-11-20T06:00:00Z")
	step(6)
	state := b.W.Ledger.State(v1alpha1.FleetTenant, "h100-warm").Status.Expected
	if state == nil || state.At != Time("2026-11-20T06:00:00Z") || state.Peak.Float() < 5 || state.Error.Sign() <= 0 || state.Tested == 0 {
		t.Fatalf("%+v", state)
	}
	// Three claim a slice; those were expected.
	b.Tick(10 * time.Minute)
	for i := range 3 {
		b.Intent(fmt.Sprintf("vision/early%d", i), Wants(1, "H100"))
	}
	if d := step(3); !strings.Contains(d.Reason, "3 claimed since; 3 ready") {
		t.Fatal(d.Reason)
	}
	for i := range 3 {
		if c := b.Contracts(fmt.Sprintf("vision/early%d", i)); len(c) != 1 || c[0].Decision.Claimed == "" {
			t.Fatal("not claimed")
		}
	}
	// The others come, and no fewer than count stay ready. They all came early,
	// so the next hour expects a little more than usual in addition to them.
	b.Tick(10 * time.Minute)
	for i := range 3 {
		b.Intent(fmt.Sprintf("vision/late%d", i), Wants(1, "H100"))
	}
	step(1)
	b.W.Now = Time("2026-11-20T09:00:00Z")
	step(2)
	for i := range 3 {
		b.Remove(fmt.Sprintf("vision/early%d", i)).Remove(fmt.Sprintf("vision/late%d", i))
	}
	b.W.Now = Time("2026-11-20T19:00:00Z")
	b.Round()
	deliverBySlice(b.Tick(time.Second)).Round()
	deliverBySlice(b.Tick(time.Second)).Round()
	step(1)
}

// The margin adds the error of the past, max and count are the bounds, and a
// ledger that knows less than a day yields nothing.
func TestPoolBounds(t *testing.T) {
	at8 := func(b *Builder) *Builder {
		b.W.Now = Time("2026-11-20T08:00:00Z")
		b.Round()
		wantOnlyKeeps(t, b)
		return b
	}
	for margin, want := range map[string]int{"0": 6, "3": 8, "100": 8} {
		if got := ready(at8(office(func(f *v1alpha1.PoolForecast) { f.Margin = Money(margin) }))); got != want {
			t.Errorf("margin %s: %d slices, want %d", margin, got, want)
		}
	}
	s := at8(office(nil)).W.Ledger.State(v1alpha1.FleetTenant, "h100-warm").Status.Expected
	if want := s.Peak.Add(s.Error).Float(); want <= 5 || want > 6 {
		t.Fatalf("the default margin is one error: %+v", s)
	}
	b := office(nil)
	b.W.Ledger = ledger.Empty()
	p := at8(b).Tick(time.Minute).Plan()
	if d := Of(p, pool); ready(b) != 1 || d.Reason != "sized by its count of 1: a forecast needs more than a day of such contracts" {
		t.Fatalf("%d: %s", ready(b), d.Reason)
	}
	// Contracts that the slices could not have served are not counted.
	for name, change := range map[string]func(*v1alpha1.WarmPool){
		"another consumer": func(p *v1alpha1.WarmPool) { p.Consumer = "turin" },
		"more GPUs":        func(p *v1alpha1.WarmPool) { p.Resources.GPU.Count = 2 },
		"another model":    func(p *v1alpha1.WarmPool) { p.Resources.GPU.Models = []string{"A100"} },
		"a bigger memory":  func(p *v1alpha1.WarmPool) { p.Resources.GPU.Memory, _ = v1alpha1.ParseMemoryRange("94GB") },
		"parts of cards":   func(p *v1alpha1.WarmPool) { p.Resources.GPU.Profile = "1g.10gb" },
	} {
		b := office(nil).Consumer("turin").Fleet(func(f *v1alpha1.FleetSpec) { change(&f.WarmPools[0]) })
		b.W.Now = Time("2026-11-20T08:00:00Z")
		b.Round()
		if s := b.W.Ledger.State(v1alpha1.FleetTenant, "h100-warm"); s.Status.Expected.Tested != 0 {
			t.Errorf("%s: %+v", name, s.Status.Expected)
		}
	}
}

// A round with too few reports leaves a pool as it is, hour or not.
func TestDeafPoolStays(t *testing.T) {
	b := office(nil)
	b.W.Now = Time("2026-11-20T08:00:00Z")
	b.Round()
	deliverBySlice(b.Tick(time.Second)).Round()
	b.W.Now, b.W.Deaf = Time("2026-11-20T22:00:00Z"), true
	if p := b.Plan(); p.Changes() {
		t.Fatal(describe(p))
	}
	b.W.Deaf = false
	if p := b.Plan(); Of(p, pool).Action != planner.Release {
		t.Fatal(describe(p))
	}
}
