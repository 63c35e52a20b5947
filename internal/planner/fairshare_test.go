package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// takes asks for so much and nothing else.
func takes(amounts string) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Resources = v1alpha1.ResourceRequest{Named: Amounts(amounts + " pods=1")}
	})
}

func heldBy(b *Builder) map[string]int {
	out := map[string]int{}
	for c := range b.W.Ledger.Contracts() {
		if c.Status.Phase.Charged() {
			out[c.Metadata.Namespace]++
		}
	}
	return out
}

func weight(n int32) func(*v1alpha1.TenantSpec) {
	return func(s *v1alpha1.TenantSpec) { s.Weight = n }
}

func TestFairShare(t *testing.T) {
	flood := func(b *Builder, tenant string, n int, changes ...func(*model.Intent)) *Builder {
		for i := range n {
			b.Intent(fmt.Sprintf("%s/i%02d", tenant, i), append([]func(*model.Intent){Wants(1)}, changes...)...)
		}
		return b
	}
	for name, c := range map[string]struct {
		made      func() *Builder
		ada, zoes int
	}{
		"equals in one commit": {func() *Builder {
			return flood(flood(paris().Tenant("ada", "rome").Tenant("zoe", "rome"), "ada", 8), "zoe", 8)
		}, 4, 4},
		"by weight": {func() *Builder {
			return flood(flood(paris().Tenant("ada", "rome").Tenant("zoe", "rome", weight(3)), "ada", 8), "zoe", 8)
		}, 2, 6},
		"what nobody else wants": {func() *Builder {
			return flood(flood(paris().Tenant("ada", "rome").Tenant("zoe", "rome"), "ada", 8), "zoe", 1)
		}, 7, 1},
		"priority goes before shares": {func() *Builder {
			return flood(flood(paris().Tenant("ada", "rome").Tenant("zoe", "rome"), "ada", 8), "zoe", 8, Priority(1))
		}, 0, 8},
		"a late comer goes before a flood": {func() *Builder {
			b := flood(paris().Tenant("ada", "rome").Tenant("zoe", "rome").Offer("paris/h100", Capacity("gpu=4")), "ada", 12)
			b.Round()
			return flood(b.Tick(time.Minute), "zoe", 3).Offer("paris/h100", Capacity("gpu=8"))
		}, 5, 3},
		// The example of the paper: 9 cores and 18 GB, tasks of <1, 4> and <3, 1>.
		"dominant resources": {func() *Builder {
			b := New().Consumer("rome").Provider("paris").Tenant("ada", "rome").Tenant("zoe", "rome").Offer("paris/cpu", Capacity("cpu=9 memory=18Gi"))
			return flood(flood(b, "ada", 9, takes("cpu=1 memory=4Gi")), "zoe", 9, takes("cpu=3 memory=1Gi"))
		}, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.made()
			p := b.Round()
			if got := heldBy(b); got["ada"] != c.ada || got["zoe"] != c.zoes {
				t.Fatalf("%v, want %d and %d\n%s", got, c.ada, c.zoes, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
	b := flood(paris().Tenant("ada", "rome"), "ada", 8)
	b.Round()
	b.Tick(time.Minute).Tenant("zoe", "rome", weight(2)).Intent("ada/more", Wants(1))
	b.Tick(time.Minute).Intent("zoe/first", Wants(1))
	p := b.Round()
	const want = "tenant zoe is served first: it holds 0.0 % of the fleet's GPUs at weight 2, ada 100.0 %"
	if d := Of(p, "ada/more"); !strings.HasSuffix(d.Reason, want) || d.Position != 2 {
		t.Fatalf("%d %s", d.Position, d.Reason)
	}
	// Who waits for something else than room would not be served first either.
	b.Intent("ada/more", Wants(1), With(func(s *v1alpha1.IntentSpec) { s.Placement.Zones = []string{"c"} }))
	if d := Of(b.Round(), "ada/more"); d.Action != planner.Queued || strings.Contains(d.Reason, "served first") {
		t.Fatalf("%s %s", d.Action, d.Reason)
	}
}

// Where shares are equal turns go by the batch, as in the next round: not by the
// order in which shares, while they were not, had the turns go before.
func TestEqualSharesGoByTheBatch(t *testing.T) {
	b := paris().Tenant("ada", "rome").Tenant("zoe", "rome").
		Intent("ada/a", Wants(4), For(2*time.Hour)).Intent("zoe/b", Wants(3), For(5*time.Hour))
	b.Round()
	b.Tick(time.Minute).Intent("ada/p", Wants(4)).Intent("zoe/q", Wants(4)).Intent("zoe/r", Wants(1))
	p := b.Round() // r makes the shares equal; q, of the same size as p, had its turn before
	again := b.Plan()
	for _, ref := range []string{"ada/p", "zoe/q"} {
		if now, then := Of(p, ref).Reason, Of(again, ref).Reason; now != then {
			t.Errorf("%s: %s\nand then: %s", ref, now, then)
		}
	}
	if d := Of(p, "ada/p"); !strings.Contains(d.Reason, "beyond 2026-11-20T14:00:00Z") {
		t.Error(d.Reason)
	}
}

// Every tenant's every intent of equal priority is served while intents end,
// whatever the others ask for, and nobody who has less is passed over.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards := rapid.IntRange(1, 4).Draw(t, "cards")
		b := New().Consumer("rome").Provider("paris").Offer("paris/h100", Cards("nvidia-h100", cards, "80Gi"))
		tenants := []string{"ada", "bob", "cid"}[:rapid.IntRange(2, 3).Draw(t, "tenants")]
		for _, name := range tenants {
			b.Tenant(name, "rome")
		}
		asked, waited := 0, map[string]int{}
		for step := range 200 {
			if asked < 40 && rapid.IntRange(0, 2).Draw(t, "asks") > 0 {
				for range rapid.IntRange(1, 3).Draw(t, "how many") {
					b.Intent(fmt.Sprintf("%s/i%d", rapid.SampledFrom(tenants).Draw(t, "who"), asked), Wants(1), For(time.Hour))
					asked++
				}
			}
			b.Tick(30 * time.Minute).Deliver()
			was := heldBy(b)
			p := b.Round()
			now := heldBy(b)
			waiting := map[string]bool{}
			for _, d := range p.Intents {
				if d.Action == planner.Queued {
					waiting[d.Tenant] = true
					waited[d.Tenant+"/"+d.Name]++
				}
			}
			for _, a := range tenants {
				for _, z := range tenants {
					if now[a] > was[a] && waiting[z] && now[a] > now[z]+1 {
						t.Fatalf("step %d: %s goes from %d to %d while %s waits with %d\n%s", step, a, was[a], now[a], z, now[z], describe(p))
					}
				}
			}
			if asked >= 40 && len(waiting) == 0 {
				break
			}
		}
		for ref, n := range waited {
			tenant, name, _ := strings.Cut(ref, "/")
			if len(b.W.Ledger.ByIntent(tenant, name)) == 0 {
				t.Fatalf("%s has waited for %d rounds", ref, n)
			}
		}
	})
}
