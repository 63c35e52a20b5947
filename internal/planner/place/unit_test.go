package place_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestUnits_ThatNoProviderCanHold: intents that belong together and are more than any of 40
// providers has are not tried on each, in each round, before each other's turn; and are told so
// in a few words.
func TestUnits_ThatNoProviderCanHold(t *testing.T) {
	made := func(n int) uint64 {
		b := New().Consumer("rome").Tenant("vision", "rome")
		for i := range 40 {
			p := fmt.Sprintf("p%02d", i)
			h100s(b.Provider(p), p+"/h100", n-1, fmt.Sprint(1+i))
		}
		for i := range n {
			b.Intent(fmt.Sprintf("vision/i%03d", i), Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) {
				s.Placement.Together, s.Objective = []string{fmt.Sprintf("i%03d", (i+1)%n)}, v1alpha1.Cost
				s.Resources.Named = Amounts("cpu=1 memory=1Gi pods=1")
			}))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := planner.Decide(b.W)
		runtime.ReadMemStats(&after)
		d := Of(p, "vision/i001")
		if len(p.Contracts) != 0 || !strings.Contains(d.Reason, "no provider has room for i000 and i001") || len(d.Reason) > 1000 {
			t.Fatalf("%d contracts, %s", len(p.Contracts), d.Reason)
		}
		return after.Mallocs - before.Mallocs
	}
	made(8)
	few, many := made(16), made(64)
	t.Logf("16: %d allocations; 64: %d", few, many)
	if many > 8*few {
		t.Errorf("16 take %d allocations, 64 take %d: want some four times as many", few, many)
	}
}
