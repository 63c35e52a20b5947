package planner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func price(change func(*v1alpha1.Price)) func(*model.Offer) {
	return func(o *model.Offer) {
		p := *o.Price
		change(&p)
		o.Price = &p
	}
}

func buys(classes ...v1alpha1.PriceClass) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Purchase = classes })
}

// TestPrices: 4 H100 with 8 cores and 64Gi.
func TestPrices(t *testing.T) {
	units := func(s string) v1alpha1.UnitPrices { return v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(s)} }
	for name, c := range map[string]struct {
		price  func(*v1alpha1.Price)
		intent func(*model.Intent)
		class  v1alpha1.PriceClass
		hourly string
		list   string
	}{
		"on demand":             {func(*v1alpha1.Price) {}, buys(), v1alpha1.OnDemand, "11.752", "11.752"},
		"spot, key by key":      {func(p *v1alpha1.Price) { p.Spot = units("1.10") }, buys(v1alpha1.Spot), v1alpha1.Spot, "4.752", "11.752"},
		"the cheaper of both":   {func(p *v1alpha1.Price) { p.Spot = units("1.10") }, buys(v1alpha1.OnDemand, v1alpha1.Spot), v1alpha1.Spot, "4.752", "11.752"},
		"spot not acceptable":   {func(p *v1alpha1.Price) { p.Spot = units("1.10") }, buys(v1alpha1.OnDemand), v1alpha1.OnDemand, "11.752", "11.752"},
		"reserved, long enough": {reservedFor(72), func(in *model.Intent) { buys(v1alpha1.OnDemand, v1alpha1.Reserved)(in); For(72 * time.Hour)(in) }, v1alpha1.Reserved, "7.952", "11.752"},
		"reserved, too short":   {reservedFor(72), func(in *model.Intent) { buys(v1alpha1.OnDemand, v1alpha1.Reserved)(in); For(71 * time.Hour)(in) }, v1alpha1.OnDemand, "11.752", "11.752"},
		"flat by cards":         {func(p *v1alpha1.Price) { p.PerHour, p.Flat = nil, Money("31.20") }, buys(), v1alpha1.OnDemand, "15.6", "15.6"},
		"in dollars":            {func(p *v1alpha1.Price) { p.Currency = "USD" }, buys(), v1alpha1.OnDemand, "10.81184", "10.81184"},
		"free":                  {func(p *v1alpha1.Price) { p.PerHour = units("0") }, buys(), v1alpha1.OnDemand, "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Offer("paris/h100", price(c.price)).Intent("vision/train", Wants(4, "H100"), c.intent)
			b.Round()
			list := b.Contracts("vision/train")
			if len(list) != 1 {
				t.Fatal(describe(b.Plan()))
			}
			p := list[0].Spec.Price
			if p.Class != c.class || p.Hourly.String() != c.hourly || p.List.String() != c.list || p.Currency != "EUR" {
				t.Fatalf("%+v", p)
			}
		})
	}
}

func reservedFor(hours int) func(*v1alpha1.Price) {
	return func(p *v1alpha1.Price) {
		p.Reserved = &v1alpha1.ReservedPrice{Term: v1alpha1.Duration{Duration: time.Duration(hours) * time.Hour}, UnitPrices: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("1.90")}}
	}
}

func TestPriceWindows(t *testing.T) {
	b := paris().Offer("paris/h100", price(func(p *v1alpha1.Price) {
		p.Windows = []v1alpha1.PriceWindow{{Window: v1alpha1.Window{Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00", Timezone: "UTC"}, PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("4")}}}
	})).Intent("vision/train", Wants(4, "H100"), AtMost("16.351"))
	// The budget is for the most expensive hour.
	want(t, b, planner.Queued, lifecycle.CodeIntentBudget)
	b.Intent("vision/train", AtMost("16.352"))
	want(t, b, planner.Place, "")
	p := b.Contracts("vision/train")[0].Spec.Price
	if p.Hourly.String() != "11.752" || len(p.Windows) != 1 || p.Windows[0].Hourly.String() != "16.352" {
		t.Fatalf("%+v", p)
	}
}

// The budget is for all replicas together: one expensive and two cheap ones may fit
// where three of the best score would not.
func TestBudgetOfAGang(t *testing.T) {
	b := New().Consumer("rome").Provider("a", "b").Tenant("vision", "rome").
		Offer("a/small", Cards("nvidia-h100", 2, "80Gi"), Costs("1")).
		Offer("b/big", Cards("nvidia-h100", 64, "80Gi"), Costs("10")).
		Intent("vision/train", Wants(1, "H100"), Times(3), AtMost("12"))
	want(t, b, planner.Place, "")
	cost := v1alpha1.Zero
	for _, c := range b.Contracts("vision/train") {
		cost = cost.Add(c.Spec.Price.Hourly)
	}
	if cost.String() != "12" {
		t.Fatalf("costs %s", cost)
	}
	b.Intent("vision/other", Wants(1, "H100"), Times(3), AtMost("20"))
	if d := Of(b.Plan(), "vision/other"); d.Action != planner.Queued || d.Rejected["budget.maxHourly"] != 1 {
		t.Fatalf("%+v", d)
	}
}

func TestMaxTotalEndsAnOpenTerm(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Budget = &v1alpha1.IntentBudget{MaxTotal: Money("117.52")} }))
	want(t, b, planner.Place, "")
	end := b.Contracts("vision/train")[0].Spec.Term.End
	if !end.Equal(Start.Add(10 * time.Hour)) {
		t.Fatalf("ends %v", end)
	}
	b.W.Now = end
	want(t, b, planner.Done, lifecycle.CodeTermEnded)
}

func TestTenantBudget(t *testing.T) {
	budget := func(f func(*v1alpha1.TenantBudget)) *Builder {
		tb := &v1alpha1.TenantBudget{}
		f(tb)
		return paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Budget = tb }).Intent("vision/train", Wants(4, "H100"))
	}
	t.Run("hourly", func(t *testing.T) {
		b := budget(func(tb *v1alpha1.TenantBudget) { tb.Hourly = Money("11.75") })
		p := want(t, b, planner.Queued, lifecycle.CodeBudget)
		if d := Of(p, "vision/train"); d.Rejected["budget.tenant.hourly"] != 1 || d.Reason != "tenant vision spends 0.00 of 11.75 EUR/h; the only offer does not fit: it costs more than is left of its tenant's hourly budget" {
			t.Fatal(describe(p))
		}
	})
	t.Run("warn", func(t *testing.T) {
		want(t, budget(func(tb *v1alpha1.TenantBudget) { tb.Hourly, tb.AtLimit = Money("1"), "warn" }), planner.Place, "")
	})
	// From Friday noon to the month's end are 252 hours: 2961.504.
	t.Run("monthly holds the rest of the month", func(t *testing.T) {
		want(t, budget(func(tb *v1alpha1.TenantBudget) { tb.Monthly = Money("2961.50") }), planner.Queued, lifecycle.CodeBudget)
		want(t, budget(func(tb *v1alpha1.TenantBudget) { tb.Monthly = Money("2961.51") }), planner.Place, "")
	})
	t.Run("a short term holds less", func(t *testing.T) {
		b := budget(func(tb *v1alpha1.TenantBudget) { tb.Monthly = Money("120") })
		want(t, b.Intent("vision/train", For(10*time.Hour)), planner.Place, "")
	})
	t.Run("the next month begins anew", func(t *testing.T) {
		b := budget(func(tb *v1alpha1.TenantBudget) { tb.Monthly = Money("300") }).Intent("vision/train", For(48*time.Hour))
		p := want(t, b, planner.Queued, lifecycle.CodeBudget)
		if !p.Due.Equal(Time("2026-12-01T00:00:00Z").Time) {
			t.Fatalf("due %v", p.Due)
		}
		b.W.Now = Time("2026-11-30T00:00:00Z") // 24 of 48 hours fall into this month
		want(t, b, planner.Place, "")
	})
	t.Run("end", func(t *testing.T) {
		b := budget(func(tb *v1alpha1.TenantBudget) { tb.Monthly, tb.AtLimit = Money("5000"), "end" })
		want(t, b, planner.Place, "")
		b.W.Tenants["vision"].Spec.Budget.Monthly = Money("11.752")
		b.Tick(59 * time.Minute)
		p := want(t, b, planner.Keep, "")
		if d := p.Due.Sub(b.W.Now.Time); d < time.Minute || d > time.Minute+2*time.Second {
			t.Fatalf("due in %v", d)
		}
		b.W.Now = p.Due
		want(t, b, planner.Queued, lifecycle.CodeBudget)
		if c := b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing {
			t.Fatal(c.Status)
		}
	})
}

func TestQuota(t *testing.T) {
	quota := func(q v1alpha1.TenantQuota, changes ...func(*model.Intent)) *Builder {
		return paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &q }).
			Intent("vision/a", Wants(3, "H100")).Intent("vision/train", append([]func(*model.Intent){Wants(3, "H100")}, changes...)...)
	}
	for name, c := range map[string]struct {
		b      *Builder
		action planner.Action
		req    string
	}{
		"gpu":             {quota(v1alpha1.TenantQuota{GPU: Ptr(int64(5))}), planner.Queued, "quota.gpu"},
		"gpu, enough":     {quota(v1alpha1.TenantQuota{GPU: Ptr(int64(6))}), planner.Place, ""},
		"gpu, never":      {quota(v1alpha1.TenantQuota{GPU: Ptr(int64(2))}), planner.Refuse, ""},
		"cpu":             {quota(v1alpha1.TenantQuota{CPU: Ptr(v1alpha1.Quantity("15"))}), planner.Queued, "quota.cpu"},
		"memory":          {quota(v1alpha1.TenantQuota{Memory: Ptr(v1alpha1.Quantity("127Gi"))}), planner.Queued, "quota.memory"},
		"by model":        {quota(v1alpha1.TenantQuota{ByModel: map[string]int64{"NVIDIA-H100": 5}}), planner.Queued, "quota.byModel"},
		"another model":   {quota(v1alpha1.TenantQuota{ByModel: map[string]int64{"nvidia-a100": 1}}), planner.Place, ""},
		"lasts too long":  {quota(v1alpha1.TenantQuota{MaxDuration: v1alpha1.Duration{Duration: time.Hour}}, For(2*time.Hour)), planner.Refuse, ""},
		"lasts for ever":  {quota(v1alpha1.TenantQuota{MaxDuration: v1alpha1.Duration{Duration: time.Hour}}), planner.Refuse, ""},
		"lasts no longer": {quota(v1alpha1.TenantQuota{MaxDuration: v1alpha1.Duration{Duration: time.Hour}}, For(time.Hour)), planner.Place, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.b.Round()
			d := Of(p, "vision/train")
			if d.Action != c.action || (c.req != "" && d.Rejected[c.req] != 1) {
				t.Fatal(describe(p))
			}
			if d.Action != planner.Place && d.Reason == "" {
				t.Fatal("no reason")
			}
			wantOnlyKeeps(t, c.b)
		})
	}
}

// Seven sevenths of a card are one card, and an eighth is one too many.
func TestSharesOfCards(t *testing.T) {
	b := paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(1))} }).
		Offer("paris/mig", Cards("nvidia-h100", 56, "10Gi"), Costs("0.40"), Spec(func(s *v1alpha1.FlavorSpec) {
			s.GPU.Sharing, s.GPU.Profile, s.GPU.UnitsPerGPU, s.GPU.ResourceName = "mig", "1g.10gb", 7, "nvidia.com/mig-1g.10gb"
		})).
		Intent("vision/train", Wants(1), Times(7), GPU(func(g *v1alpha1.GPURequest) { g.Profile = "1g.10gb" }))
	want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	if c.Spec.Resources["nvidia.com/mig-1g.10gb"].Int64() != 1 || c.Spec.GPUs.UnitsPerGPU != 7 {
		t.Fatalf("%+v", c.Spec)
	}
	b.Intent("vision/train", Times(8))
	want(t, b, planner.Queued, lifecycle.CodeQuota)
	// A share is rounded up to units: 0.3 of a card is three sevenths.
	b.W.AllowEnds = true
	b.Remove("vision/train").Round()
	b.Tick(time.Second).Deliver().Intent("vision/part", Wants(1), GPU(func(g *v1alpha1.GPURequest) { g.Count, g.Share, g.Sharing = 0, Money("0.3"), "mig" })).Round()
	if got := b.Contracts("vision/part"); len(got) != 1 || got[0].Spec.GPUs.Count != 3 {
		t.Fatalf("%+v\n%s", got, describe(b.Plan()))
	}
}

func TestRoundingUp(t *testing.T) {
	b := paris().Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) {
		s.Partition = &v1alpha1.Partition{Min: Amounts("gpu=2 cpu=4"), Step: Amounts("gpu=2 memory=48Gi")}
	})).Intent("vision/train", Wants(3, "H100"))
	p := want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	if got := c.Spec.Resources.Canonical(); got["nvidia.com/gpu"] != "4" || got["cpu"] != "8" || got["memory"] != "96Gi" {
		t.Fatal(got)
	}
	// The rounded size is paid for, and the plan shows both.
	if c.Spec.Price.Hourly.String() != "11.848" {
		t.Fatal(c.Spec.Price.Hourly)
	}
	if asked := Of(p, "vision/train").Contracts[0].Asked.Canonical(); asked["nvidia.com/gpu"] != "3" || asked["memory"] != "64Gi" {
		t.Fatal(asked)
	}
}

func TestDefaults(t *testing.T) {
	b := paris().Intent("vision/train", With(func(s *v1alpha1.IntentSpec) {
		s.Resources.GPU = &v1alpha1.GPURequest{Count: 1}
	}))
	b.Round()
	got := b.Contracts("vision/train")[0].Spec.Resources.Canonical()
	for name, n := range map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"} {
		if got[name] != n {
			t.Errorf("%s %q, want %s", name, got[name], n)
		}
	}
	// The fleet's own, and for how long.
	b = paris().Fleet(func(f *v1alpha1.FleetSpec) {
		f.Defaults = defaults("3", "5Gi", "7", "9Gi")
		f.Defaults.Duration.Duration = 2 * time.Hour
	}).Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Resources.GPU = &v1alpha1.GPURequest{Count: 1} }))
	b.Round()
	c := b.Contracts("vision/train")[0]
	got = c.Spec.Resources.Canonical()
	for name, n := range map[string]string{"cpu": "3", "memory": "5Gi", "pods": "7", "ephemeral-storage": "9Gi"} {
		if got[name] != n {
			t.Errorf("%s %q, want the fleet's %s", name, got[name], n)
		}
	}
	if want := v1alpha1.TimeOf(Start.Add(2 * time.Hour)); c.Spec.Term.End != want {
		t.Errorf("it ends %v, want %v", c.Spec.Term.End, want)
	}
}

// What does not report shows nothing of what an intent asks for: daemons that know
// of more and of fewer lost providers write the same reason.
func TestLostProvidersAreNoReason(t *testing.T) {
	for _, lost := range []int{0, 1, 3} {
		b := paris().Intent("vision/train", Wants(1, "H100"), AtMost("0.5"))
		for i := range lost {
			b.Offer(fmt.Sprintf("paris/lost%d", i), Heard(model.Lost))
		}
		want(t, b, planner.Queued, lifecycle.CodeIntentBudget)
	}
}
