package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

const pool = v1alpha1.FleetTenant + "/h100-warm"

// warmed is a world whose pool has two slices that work.
func warmed(t *testing.T, changes ...func(*v1alpha1.WarmPool)) *Builder {
	t.Helper()
	p := v1alpha1.WarmPool{Name: "h100-warm", Consumer: "rome", Count: 2, Resources: v1alpha1.ResourceRequest{
		GPU: &v1alpha1.GPURequest{Count: 1, Models: []string{"H100"}}, Named: Amounts("cpu=16 memory=128Gi pods=50 ephemeral-storage=200Gi"),
	}}
	for _, change := range changes {
		change(&p)
	}
	b := paris().Consumer("turin").Fleet(func(f *v1alpha1.FleetSpec) { f.WarmPools = []v1alpha1.WarmPool{p} })
	plan := b.Round()
	if d := Of(plan, pool); d.Action != planner.Place || len(d.Contracts) != 2 {
		t.Fatal(describe(plan))
	}
	wantOnlyKeeps(t, b)
	deliverBySlice(b.Tick(10 * time.Second)).Round()
	b.Tick(10 * time.Second)
	return b
}

// deliverBySlice is Deliver, and the agents report what they grant, by slice.
func deliverBySlice(b *Builder) *Builder {
	b.Deliver()
	for i := range b.W.Offers {
		f := b.W.Offers[i].Flavor
		held := map[string]v1alpha1.Resources{}
		for _, c := range b.W.Ledger.HeldOn(f.Metadata.Namespace, f.Metadata.Name) {
			if c.Status.Phase.Charged() {
				held[c.Spec.Slice] = ledger.AsOffered(c, f)
			}
		}
		b.Offer(f.Ref(), Spec(func(s *v1alpha1.FlavorSpec) { s.Held = held }))
	}
	return b
}

func TestWarmPoolIsFilledAndClaimed(t *testing.T) {
	b := warmed(t)
	slices := map[string]bool{}
	for _, c := range b.Contracts(pool) {
		slices[c.Spec.Slice] = true
		if c.Metadata.Name != c.Spec.Slice || c.Status.Phase != v1alpha1.PhaseActive || c.Spec.Offload != nil {
			t.Fatalf("%+v", c)
		}
	}
	if n := b.W.Ledger.Totals("vision").Contracts; n != 0 {
		t.Fatalf("vision is charged for %d warm contracts", n)
	}
	b.Intent("vision/train", Wants(1, "H100"))
	p := want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	old := b.W.Ledger.Contract(c.Spec.Slice)
	if !slices[c.Spec.Slice] || c.Metadata.Name == c.Spec.Slice || c.Decision.Claimed != "h100-warm" || !c.Spec.Resources.Equal(old.Spec.Resources) {
		t.Fatalf("not claimed: %+v\n%s", c.Spec, describe(p))
	}
	if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "kept warm in pool h100-warm") || d.Contracts[0].Asked == nil {
		t.Fatal(describe(p))
	}
	if old.Status.Phase != v1alpha1.PhaseReleased || !strings.Contains(old.Status.Why(), "Claimed: by vision/train as "+c.Metadata.Name) {
		t.Fatalf("%+v", old.Status)
	}
	if list := b.Contracts(pool); len(list) != 2 || list[0].Status.Phase != v1alpha1.PhaseReserved || slices[list[0].Spec.Slice] {
		t.Fatalf("not refilled:\n%s", describe(p))
	}
	deliverBySlice(b.Tick(time.Second)).Round()
	if got := b.Contracts("vision/train")[0].Status.Phase; got != v1alpha1.PhaseActive {
		t.Fatal(got)
	}
	// Of three contracts of one card each those of the pool are held from vision/train's
	// point of view, whoever reports them under what name.
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil {
		t.Fatal(err)
	}
	if free := e.Offers[0].Free[v1alpha1.GPU].Int64(); free != 6 {
		t.Fatalf("%d of 8 cards are free", free)
	}
	// Its end is that of every contract.
	b.Tick(time.Minute).Remove("vision/train").Round()
	if got := b.Contracts("vision/train")[0].Status.Phase; got != v1alpha1.PhaseReleasing {
		t.Fatal(got)
	}
	b.Tick(time.Second).Round()
	if len(b.Contracts("vision/train")) != 1 {
		t.Fatal("it ended though its provider still reports the slice")
	}
	b.Observe(c.Metadata.Name, Gone())
	b.Tick(time.Second).Round()
	if len(b.Contracts("vision/train")) != 1 {
		t.Fatal("it ended though its provider still reports the slice")
	}
	deliverBySlice(b).Tick(time.Second).Round()
	if len(b.Contracts("vision/train")) != 0 {
		t.Fatal("it does not end")
	}
}

// Each case keeps an intent from claiming.
func TestWarmSlicesThatDoNotServe(t *testing.T) {
	for name, c := range map[string]struct {
		intent func(*model.Intent)
		world  func(*Builder)
	}{
		"another consumer": {With(func(s *v1alpha1.IntentSpec) { s.Consumer = "turin" }), func(b *Builder) {
			b.Tenant("vision", "", func(s *v1alpha1.TenantSpec) { s.Consumers = []string{"turin"} })
		}},
		"more cores":         {With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(17000) }), nil},
		"more cards":         {Wants(2, "H100"), nil},
		"no cards":           {Wants(0), nil},
		"another resource":   {With(func(s *v1alpha1.IntentSpec) { s.Resources.Named["rdma/hca"] = v1alpha1.AmountOf(1) }), func(b *Builder) { b.Offer("paris/h100", Capacity("rdma/hca=4")) }},
		"a runtime class":    {With(func(s *v1alpha1.IntentSpec) { s.VirtualNode = &v1alpha1.VirtualNodeSpec{RuntimeClassName: "kata"} }), nil},
		"only a reservation": {With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve }), nil},
		"another region": {With(func(s *v1alpha1.IntentSpec) { s.Placement.Regions = []string{"south"} }), func(b *Builder) {
			b.Provider("oslo").Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("3"), In("south", ""))
		}},
		"its size is over quota": {With(func(*v1alpha1.IntentSpec) {}), func(b *Builder) {
			b.Tenant("vision", "", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{CPU: Ptr(v1alpha1.Quantity("10"))} })
		}},
		"its size is too dear": {AtMost("3.30"), nil},
		"a cheaper offer": {With(func(*v1alpha1.IntentSpec) {}), func(b *Builder) {
			b.Provider("oslo").Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
		}},
		"its provider is silent": {With(func(*v1alpha1.IntentSpec) {}), func(b *Builder) {
			b.Provider("oslo").Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).Offer("paris/h100", Heard(model.Silent))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := warmed(t)
			if c.world != nil {
				c.world(b)
			}
			p := b.Intent("vision/train", Wants(1, "H100"), c.intent).Round()
			list := b.Contracts("vision/train")
			if len(list) == 0 || list[0].Decision.Claimed != "" || list[0].Spec.Slice != list[0].Metadata.Name {
				t.Fatalf("not placed elsewhere:\n%s", describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// A pool's premium is how much more expensive than the best other offer a slice may
// be: with its 16 cores and 128Gi it costs 3.554 an hour, and what was asked for
// would cost 3.202 there.
func TestWarmPremium(t *testing.T) {
	for other, claims := range map[string]map[string]bool{"9": {"": true, "0": false, "0.109": false, "0.11": true}, "2.90": {"": false, "0.25": true}} {
		for premium, claim := range claims {
			b := warmed(t, func(p *v1alpha1.WarmPool) {
				if premium != "" {
					p.MaxPremium = Money(premium)
				}
			})
			b.Provider("oslo").Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs(other))
			b.Intent("vision/train", Wants(1, "H100"), cheap).Round()
			if got := b.Contracts("vision/train")[0].Decision.Claimed != ""; got != claim {
				t.Errorf("beside %s with premium %q: claimed %v", other, premium, got)
			}
		}
	}
}

// A gang of which one replica fits nowhere claims nothing.
func TestWarmClaimsAreTakenBack(t *testing.T) {
	b := warmed(t).Offer("paris/h100", Capacity("gpu=2"))
	b.Intent("vision/train", Wants(1, "H100"), Times(3))
	want(t, b, planner.Queued, lifecycle.CodeGang)
	for _, c := range b.Contracts(pool) {
		if c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("%+v", c.Status)
		}
	}
	b.Intent("vision/train", Times(2))
	want(t, b, planner.Place, "")
	for _, c := range b.Contracts("vision/train") {
		if c.Decision.Claimed == "" {
			t.Fatalf("%+v", c.Decision)
		}
	}
	if n := len(b.Contracts(pool)); n != 0 {
		t.Fatalf("the pool holds %d of no cards", n)
	}
}

func TestWarmPoolFollowsItsCount(t *testing.T) {
	b := warmed(t)
	for _, n := range []int32{3, 1, 0} {
		b.Tick(time.Minute).Fleet(func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{f.WarmPools[0]}
			f.WarmPools[0].Count = n
		}).Round()
		wantOnlyKeeps(t, b)
		deliverBySlice(b.Tick(time.Second)).Round()
		deliverBySlice(b.Tick(time.Second)).Round()
		if got := len(b.Contracts(pool)); got != int(n) {
			t.Fatalf("%d of %d", got, n)
		}
	}
	b = warmed(t)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.WarmPools = nil }).Round()
	for range 3 {
		deliverBySlice(b.Tick(time.Second)).Round()
	}
	if got := len(b.Contracts(pool)); got != 0 {
		t.Fatalf("a pool that is no more holds %d", got)
	}
}
