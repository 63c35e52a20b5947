package quality

import (
	"flag"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

var (
	stayers = flag.Int("stays", 0, "seeds of intents that come and go, without an optimum to compare with; 0 is none, with -full 10")
	oldest  = flag.Int("stays-from", 1, "the first of them")
	comers  = flag.Int("arrivals", 120, "how many intents come in each")
)

// What intents that come and go cost, with the penalty for what has no place, beside what
// the cheapest offer for each in its turn comes to; and how much has no place. With consolidation
// no more is refused in the mean than without, and it costs less.
func TestOnlineArrivals_Seeds(t *testing.T) {
	n := *stayers
	if n == 0 && *full {
		n = 10
	}
	threshold := v1alpha1.MustDecimal("0.1")
	apply := v1alpha1.Consolidation{Mode: "apply", Threshold: &threshold, Hold: v1alpha1.Duration{Duration: time.Minute}}
	type sum struct {
		refused, costlier, without int // of the seeds: in how many it costs more than the one before, or leaves more without a place
		percent                    float64
	}
	refused := 0 // by cheapest first
	var alone, moving sum
	count := func(of *sum, o, before *simulate.Outcome, base float64) float64 {
		percent := 100 * (o.CostWithPenalty.Float()/base - 1)
		of.refused += o.Refused
		of.percent += percent / float64(n)
		if o.CostWithPenalty.Float() > before.CostWithPenalty.Float() {
			of.costlier++
		}
		if o.UnplacedGPUHours > before.UnplacedGPUHours {
			of.without++
		}
		return percent
	}
	for seed := int64(*oldest); seed < int64(*oldest+n); seed++ {
		in := draw(t, seed, *comers, 25)
		stays := in.stays(seed, 40)
		cheapest := in.live(t, stays, "cheapest-first", v1alpha1.Consolidation{})
		planned := in.live(t, stays, simulate.Planner, v1alpha1.Consolidation{})
		moved := in.live(t, stays, simulate.Planner, apply)
		base := cheapest.CostWithPenalty.Float()
		refused += cheapest.Refused
		t.Logf("seed %2d: cheapest first %9.2f, %3d refused; planner %+6.2f %%, %3d; and consolidation %+6.2f %%, %3d, %3d moves", seed, base, cheapest.Refused,
			count(&alone, planned, cheapest, base), planned.Refused, count(&moving, moved, planned, base), moved.Refused, moved.Moved)
	}
	if n > 0 {
		t.Logf("of %d seeds: cheapest first refuses %d", n, refused)
		t.Logf("the planner %+.2f %%, refuses %d; costs more than that in %d, leaves more GPU-hours without a place in %d", alone.percent, alone.refused, alone.costlier, alone.without)
		t.Logf("and consolidation %+.2f %%, refuses %d; costs more than without in %d, leaves more in %d", moving.percent, moving.refused, moving.costlier, moving.without)
	}
	if n >= 20 && alone.percent > 0 {
		t.Errorf("what places are worth to others costs %.2f %%", alone.percent)
	}
	if n >= 10 && (moving.refused > alone.refused || moving.percent >= alone.percent) {
		t.Errorf("consolidation refuses %d at %+.2f %%, without it %d at %+.2f %%", moving.refused, moving.percent, alone.refused, alone.percent)
	}
}
