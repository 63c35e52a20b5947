package quality

import (
	"flag"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

var stayers = flag.Int("stays", 0, "seeds of intents that come and go, without an optimum to compare with; 0 is none, with -full 10")

// What intents that come and go cost, with the penalty for what has no place, beside what
// the cheapest offer for each in its turn comes to; and how much has no place.
func TestOnlineArrivals_Seeds(t *testing.T) {
	n := *stayers
	if n == 0 && *full {
		n = 10
	}
	threshold := v1alpha1.MustDecimal("0.1")
	apply := v1alpha1.Consolidation{Mode: "apply", Threshold: &threshold, Hold: v1alpha1.Duration{Duration: time.Minute}}
	worse, refused := 0, 0
	for seed := range n {
		in := draw(t, int64(seed+1), 120, 25)
		stays := in.stays(int64(seed+1), 40)
		first := in.live(t, stays, "cheapest-first", v1alpha1.Consolidation{})
		alone := in.live(t, stays, simulate.Planner, v1alpha1.Consolidation{})
		moving := in.live(t, stays, simulate.Planner, apply)
		base := first.CostWithPenalty.Float()
		t.Logf("seed %2d: cheapest first %9.2f, %3d refused; planner %+6.2f %%, %3d; and consolidation %+6.2f %%, %3d, %3d moves", seed+1, base, first.Refused,
			100*(alone.CostWithPenalty.Float()/base-1), alone.Refused, 100*(moving.CostWithPenalty.Float()/base-1), moving.Refused, moving.Moved)
		if moving.CostWithPenalty.Float() > alone.CostWithPenalty.Float() {
			worse++
		}
		if moving.UnplacedGPUHours > alone.UnplacedGPUHours {
			refused++
		}
	}
	if n > 0 {
		t.Logf("of %d seeds consolidation costs more in %d, and leaves more GPU-hours without a place in %d", n, worse, refused)
	}
}
