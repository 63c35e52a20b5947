package planner_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// roomy is a market with room for so many intents, all on one flavor.
func roomy(intents int, contracts int64) *Builder {
	b := paris().Tenant("nlp", "rome").Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Contracts = contracts }).
		Offer("paris/h100", Capacity("cpu=1000 memory=10Ti pods=100000 ephemeral-storage=1000Ti"))
	for i := range intents {
		b.Intent(fmt.Sprintf("vision/m%05d", i), tiny)
	}
	return b
}

// Without any quota a tenant holds a thousand contracts and no more, whatever it
// commits; what it holds when the limit comes down to that stays.
func TestATenantHoldsAThousandContracts(t *testing.T) {
	held := func(b *Builder) int { return b.W.Ledger.Totals("vision").Contracts }
	for _, c := range []struct {
		name            string
		limit           int64
		rounds, present int
	}{{"default", 0, 3, 1000}, {"lowered", 1200, 3, 1200}} {
		t.Run(c.name, func(t *testing.T) {
			b := roomy(1500, c.limit)
			for range c.rounds {
				b.Round()
				b.Tick(time.Minute)
			}
			if held(b) != c.present {
				t.Fatalf("%d contracts, want %d", held(b), c.present)
			}
			b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Contracts = 0 })
			b.Intent("nlp/z", tiny).Round()
			if n := b.W.Ledger.Totals("nlp").Contracts; held(b) != c.present || n != 1 {
				t.Fatalf("%d contracts, want %d; the other tenant has %d, want 1", held(b), c.present, n)
			}
			b.Remove("vision/m00000").Round()
			if held(b) != c.present-1 { // it counts until it is seen gone
				t.Fatalf("%d contracts after one was given back, want %d", held(b), c.present-1)
			}
		})
	}
}

// Rounds of earlier rules had another limit, and are replayed with it.
func TestEarlierRulesHadMoreContracts(t *testing.T) {
	for rules, want := range map[int]int{1: 1500, 3: 1500, planner.Rules: 1000} {
		b := roomy(1500, 0)
		b.W.Rules = rules
		if p := b.Plan(); len(p.Contracts) != want {
			t.Errorf("rules %d: %d contracts, want %d", rules, len(p.Contracts), want)
		}
	}
}

// What a plan costs grows with what it places, and not with that times what is
// held where it places it: looking at all contracts of a flavor for each new one
// took 11 of 28 s of processor time for 20,000 contracts.
func TestAPlanOnOneFlavorGrowsWithWhatItPlaces(t *testing.T) {
	took := func(n int) uint64 {
		b := roomy(n, 1<<20)
		b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 << 40 })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := planner.Decide(b.W)
		runtime.ReadMemStats(&after)
		if len(p.Contracts) != n {
			t.Fatalf("%d contracts for %d intents", len(p.Contracts), n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	took(10)
	small, large := took(1000), took(8000)
	if ratio := float64(large) / float64(small); ratio > 12 {
		t.Errorf("8,000 contracts took %.1f times the bytes of 1,000 (%d and %d), want about 8", ratio, large, small)
	}
}
