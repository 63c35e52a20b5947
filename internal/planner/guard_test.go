package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// several is a fleet whose tenants a, b, … hold so many contracts each, of one
// intent each, on lyon's and paris's cards in turn; one round may end five.
func several(t *testing.T, held ...int) *Builder {
	t.Helper()
	b := New().Consumer("rome").Provider("paris", "lyon", "ulm").Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(5)) }).
		Offer("paris/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("2")).Offer("lyon/a100", Cards("nvidia-a100", 16, "80Gi"), Costs("2"))
	for i, n := range held {
		tenant := string(rune('a' + i))
		b.Tenant(tenant, "rome")
		for k := range n {
			b.Intent(fmt.Sprintf("%s/job%d", tenant, k), Wants(1, []string{"H100", "A100"}[i%2]))
		}
	}
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(time.Minute)
	return b
}

// empty deletes all intents of tenants.
func empty(b *Builder, tenants ...string) {
	for _, in := range slices.Clone(b.W.Intents) {
		if slices.Contains(tenants, in.Metadata.Namespace) {
			b.Remove(in.Metadata.Namespace + "/" + in.Metadata.Name)
		}
	}
}

// ended counts the contracts that a plan begins to release, by tenant, as "a3 b1".
func ended(p *planner.Plan) string {
	n := map[string]int{}
	for _, c := range p.Contracts {
		if c.Before != nil && c.Before.Status.Phase.Charged() && c.After.Status.Phase == v1alpha1.PhaseReleasing {
			n[c.Before.Metadata.Namespace]++
		}
	}
	var out []string
	for tenant, n := range n {
		out = append(out, fmt.Sprint(tenant, n))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestMaxEnds_ByTenant(t *testing.T) {
	for name, c := range map[string]struct {
		held   []int
		remove []string
		// rounds are what ends, round after round; kept what is held back then.
		rounds []string
		kept   string
	}{
		"within the limit":                        {[]int{3, 2}, []string{"a", "b"}, []string{"a3 b2"}, ""},
		"one tenant over it does not stop others": {[]int{6, 2, 1}, []string{"a", "b"}, []string{"b2"}, "6 contracts would end because intents are gone, of tenant a;"},
		"one that is most of them goes next":      {[]int{5, 1}, []string{"a", "b"}, []string{"b1", "a5"}, ""},
		"small ones of many tenants":              {[]int{1, 1, 1, 1, 1, 1, 1}, []string{"a", "b", "c", "d", "e", "f"}, []string{""}, "6 contracts would end because intents are gone, of tenants a, b, c and 3 more;"},
		"two tenants alike":                       {[]int{3, 3}, []string{"a", "b"}, []string{""}, "6 contracts would end because intents are gone, of tenants a, b;"},
		"one large, and the others over it too":   {[]int{8, 3, 3}, []string{"a", "b", "c"}, []string{""}, "14 contracts would end because intents are gone, of tenants a, b, c;"},
	} {
		t.Run(name, func(t *testing.T) {
			b := several(t, c.held...)
			empty(b, c.remove...)
			for i, want := range append(c.rounds, "") {
				p := b.Round()
				if got := ended(p); got != want {
					t.Fatalf("round %d ends %q, want %q:\n%s", i+1, got, want, describe(p))
				}
			}
			p := b.Plan()
			if c.kept == "" && p.HeldBack != "" || c.kept != "" && !strings.HasPrefix(p.HeldBack, c.kept) {
				t.Errorf("held back: %q, want %q", p.HeldBack, c.kept)
			}
			b.W.AllowEnds = true
			b.Round()
			for _, in := range c.remove {
				for _, k := range b.Contracts(in + "/job0") {
					if k.Status.Phase != v1alpha1.PhaseReleasing {
						t.Errorf("with leave %s is %s", k.Metadata.Name, k.Status.Phase)
					}
				}
			}
		})
	}
}

// What a tenant deletes does not stop failovers, nor does one lost provider those
// of another; half of the network does.
func TestMaxEnds_ByProvider(t *testing.T) {
	spare := func(b *Builder) *Builder {
		return b.Offer("ulm/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("9")).Offer("ulm/a100", Cards("nvidia-a100", 16, "80Gi"), Costs("9"))
	}
	lost := func(b *Builder, refs ...string) *Builder {
		for _, ref := range refs {
			b.Offer(ref, Heard(model.Lost))
		}
		return b
	}
	for name, c := range map[string]struct {
		b    *Builder
		ends string
		kept string
	}{
		"deletions beside a loss": {func() *Builder {
			b := spare(several(t, 6, 2))
			empty(b, "a")
			return lost(b, "lyon/a100")
		}(), "b2", "6 contracts would end because intents are gone, of tenant a;"},
		"a large loss beside a small one": {lost(spare(several(t, 6, 2)), "paris/h100", "lyon/a100"), "b2", "6 contracts would end because providers are lost, of provider paris;"},
		"half of the network":             {lost(spare(several(t, 4, 4)), "paris/h100", "lyon/a100"), "", "8 contracts would end because providers are lost, of providers lyon, paris;"},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.b.Round()
			if got := ended(p); got != c.ends || !strings.HasPrefix(p.HeldBack, c.kept) {
				t.Fatalf("ends %q, want %q; held back: %q, want %q\n%s", got, c.ends, p.HeldBack, c.kept, describe(p))
			}
		})
	}
}

// A gang that leaves whole because one of its replicas loses its spot capacity counts whole;
// one whose replicas may be anywhere counts by what is taken back.
func TestMaxEnds_OfGangs(t *testing.T) {
	for name, c := range map[string]struct {
		gang  bool
		rules int
		ends  int32
		held  int
	}{
		"too many at once":        {true, 0, 3, 4},
		"as many as may end":      {true, 0, 4, 0},
		"of earlier rules":        {true, 22, 3, 0},
		"one that is not a gang":  {false, 0, 1, 0},
		"nothing may end at once": {false, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("oslo").Tenant("vision", "rome").
				Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = &c.ends }).
				Offer("oslo/h100", Cards("nvidia-h100", 24, "80Gi"), Capacity("cpu=2000 memory=8Ti pods=2000"), Costs("2")).
				Offer("oslo/spot", Cards("nvidia-h100", 8, "80Gi"), Capacity("cpu=2000 memory=8Ti pods=2000"), Costs("2"), func(o *model.Offer) {
					o.Price.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("1")}
				})
			b.W.Rules = c.rules
			b.Intent("vision/train", Wants(8, "H100"), Times(4), With(func(s *v1alpha1.IntentSpec) {
				s.Gang, s.Objective, s.Purchase = &c.gang, v1alpha1.Cost, []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}
			})).Round()
			b.Tick(time.Minute).Deliver().Round()
			p := b.Offer("oslo/spot", Heard(model.Withdrawn)).Tick(time.Minute).Round()
			if p.HeldBackEnds != c.held {
				t.Fatalf("held back %d, want %d: %q\n%s", p.HeldBackEnds, c.held, p.HeldBack, describe(p))
			}
			if again := b.Plan(); again.Changes() {
				t.Errorf("planned again it changes\n%s", describe(again))
			}
		})
	}
}

// Earlier rules hold all back together.
func TestMaxEnds_EarlierRulesHoldAllBack(t *testing.T) {
	b := several(t, 6, 2)
	empty(b, "a", "b")
	b.W.Rules = 2 // before RulesEndsApart
	if p := b.Plan(); p.Changes() || p.HeldBackEnds != 8 || !strings.HasPrefix(p.HeldBack, "8 contracts would end because intents are gone or providers are lost; one round may end 5 (") {
		t.Fatalf("%q\n%s", p.HeldBack, describe(p))
	}
	b.W.Rules = planner.Rules
	if p := b.Plan(); ended(p) != "b2" || p.HeldBackEnds != 6 {
		t.Fatal(describe(p))
	}
}

// What one commit deletes of several tenants is held back together.
func TestMaxEnds_OneCommitThatSpansTenants(t *testing.T) {
	b := several(t, 6, 2, 1)
	b.W.RemovedBy = map[string]string{}
	for _, in := range b.W.Intents {
		by := "Ada L. in 4f1c2ab"
		if in.Metadata.Namespace == "c" {
			by = "Grace H. in 9d3e7f0"
		}
		b.W.RemovedBy[in.Path] = by
	}
	empty(b, "a", "b", "c")
	p := b.Round()
	if got := ended(p); got != "c1" || !strings.HasPrefix(p.HeldBack, "8 contracts would end because intents are gone, of tenants a, b;") || len(p.Removed) != 9 {
		t.Fatalf("ends %q, held back: %q, %q", got, p.HeldBack, p.Removed)
	}
	if got := ended(b.Round()); got != "" {
		t.Fatalf("ends %q then", got)
	}
}

// What an intent gives up in the same round is none of what would end: else that would be held
// back for it in one plan, and end in the next, in which nothing has changed.
func TestMaxEnds_NotWhatIsGivenUp(t *testing.T) {
	for name, change := range map[string]func(*Builder){
		"fewer replicas": func(b *Builder) { b.Intent("vision/a", Times(1)) },
		"suspended": func(b *Builder) {
			b.Intent("vision/a", With(func(s *v1alpha1.IntentSpec) { s.Suspend = true }))
		},
		"only finds": func(b *Builder) {
			b.Intent("vision/a", With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("lyon", "paris").Tenant("vision", "rome").
				Offer("lyon/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("1")).
				Offer("paris/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("2")).
				Intent("vision/a", Wants(1), Times(4), cheap).Intent("vision/b", Wants(1), Times(3), cheap)
			b.Round()
			b.Tick(time.Minute).Deliver().Round()
			b.Tick(10*time.Minute).Offer("lyon/h100", Heard(model.Lost))
			if p := b.Plan(); p.HeldBackEnds != 7 {
				t.Fatalf("%d of 7 are held back\n%s", p.HeldBackEnds, describe(p))
			}
			change(b)
			if p := b.Round(); p.HeldBack != "" || Of(p, "vision/b").Action != planner.Move {
				t.Errorf("held back %q\n%s", p.HeldBack, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}
