package planner_test

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// overcommitted is a flavor of 100 cores, sold one and a half times, of which
// so many intents of one core each use a part.
func overcommitted(intents int, part float64, maxRisk string) *Builder {
	ratios := v1alpha1.Overcommit{v1alpha1.CPU: v1alpha1.MustDecimal("1.5")}
	if maxRisk != "" {
		ratios["maxRisk"] = v1alpha1.MustDecimal(maxRisk)
	}
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/cpu", Capacity("cpu=100 memory=8Ti pods=10000"), Spec(func(s *v1alpha1.FlavorSpec) { s.Overcommit = ratios }))
	for i := range intents {
		b.Intent(fmt.Sprintf("vision/i%03d", i), oneCore)
	}
	b.Round()
	b.Tick(time.Second).Deliver().Round()
	usage := map[string]v1alpha1.Resources{}
	for c := range b.W.Ledger.Contracts() {
		usage[c.Spec.Slice] = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(int64(part * 1000))}
	}
	return b.Offer("paris/cpu", Spec(func(s *v1alpha1.FlavorSpec) { s.Usage = usage }))
}

func oneCore(in *model.Intent) {
	in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=1 memory=1Gi pods=1 ephemeral-storage=1Gi")}
}

// How many one-core contracts a flavor of 100 cores takes beyond the 80 that it
// has, by overcommit 1.5 and by what those use.
func TestOvercommitRisk(t *testing.T) {
	for _, c := range []struct {
		part    float64
		maxRisk string
		want    int
	}{
		{0.2, "", 70},     // the ratio alone: 150 cores
		{0.2, "1", 70},    // any risk
		{0.2, "0", 20},    // none: no more than there is
		{0.2, "0.01", -1}, // by the formula below
		{0.5, "0.01", -1},
		{1.0, "0.01", 20},        // all is used
		{0.5, "0.000000001", 20}, // hardly any risk
	} {
		b := overcommitted(80, c.part, c.maxRisk)
		p := b.Intent("vision/more", oneCore, Times(100), With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(false) })).Round()
		got := len(b.Contracts("vision/more"))
		if c.want < 0 {
			c.want = byFormula(80, c.part, 0.01)
		}
		if got != c.want {
			t.Errorf("use %.1f, maxRisk %q: %d more, want %d\n%s", c.part, c.maxRisk, got, c.want, Of(p, "vision/more").Reason)
		}
	}
}

// byFormula is Hoeffding's bound solved by trying, in cores.
func byFormula(n int, part, maxRisk float64) int {
	best := 0
	for x := 0.0; x <= 70; x += 0.001 {
		t := 100 - float64(n)*part - part*x
		if t > 0 && math.Exp(-2*t*t/(float64(n)+x*x)) <= maxRisk {
			best = int(x)
		}
	}
	return max(best, 100-n)
}

// Whatever is sold, contracts that use their mean at random together use more
// than there is no more often than maxRisk allows.
func TestOvercommitHoldsItsRisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := float64(rapid.IntRange(1, 9).Draw(t, "part")) / 10
		b := overcommitted(rapid.IntRange(5, 60).Draw(t, "contracts"), part, "0.05")
		b.Intent("vision/more", oneCore, Times(int32(rapid.IntRange(1, 100).Draw(t, "more"))), With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(false) })).Round()
		rnd := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		n := b.W.Ledger.Held()
		over := 0
		const tries = 2000
		for range tries {
			used := 0
			for range n {
				if rnd.Float64() < part {
					used++ // all or nothing: the widest a mean allows
				}
			}
			if used > 100 {
				over++
			}
		}
		if float64(over)/tries > 0.05 {
			t.Fatalf("%d contracts that use %.1f exceed 100 cores in %d of %d tries", n, part, over, tries)
		}
	})
}
