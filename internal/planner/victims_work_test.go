package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// fullWorld has so many contracts of nlp on all there is, and as many intents of vision to
// which they may give way.
func fullWorld(n int) *Builder {
	b := New().Consumer("rome").Tenant("vision", "rome").Tenant("nlp", "rome")
	for i := range 10 {
		p := fmt.Sprintf("p%d", i)
		b.Provider(p).Offer(p+"/h100", Cards("h100", n/10, "80Gi"), Capacity("cpu=4096 memory=16Ti pods=4096"), Costs(fmt.Sprintf("2.%02d", i)))
	}
	small := With(func(s *v1alpha1.IntentSpec) { s.Resources.Named = Amounts("cpu=1 memory=1Gi pods=1") })
	for i := range n {
		b.Intent(fmt.Sprintf("nlp/low-%d", i), Wants(1), small)
	}
	b.Round()
	b.Tick(time.Minute).Deliver()
	for i := range n {
		b.Intent(fmt.Sprintf("vision/high-%d", i), Wants(1), small, With(func(s *v1alpha1.IntentSpec) {
			s.Priority, s.Preemption = int32(1+i%900), &v1alpha1.Preemption{Preempts: "lower"} //nolint:gosec // few
		}))
	}
	return b
}

// What is looked for contracts that give way counts against limits.work: who had no turn is
// told so, and all have theirs in later rounds.
func TestWorkOfVictims(t *testing.T) {
	const n = 40
	b := fullWorld(n)
	_, all := planner.CountWork(b.W)
	b = fullWorld(n).Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = all.Parts / 24 })
	p, did := planner.CountWork(b.W)
	if most := all.Parts * 3 / 4; all.Parts == 0 || did.Parts > most {
		t.Errorf("%d looks of %d, want at most %d", did.Parts, all.Parts, most)
	}
	waits := 0
	for i := range n {
		if d := Of(p, fmt.Sprintf("vision/high-%d", i)); strings.Contains(d.Reason, "which contracts give way to it is looked for") {
			waits++
		}
	}
	if waits == 0 || waits == n || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > 10*time.Second {
		t.Errorf("%d of %d wait for their turn, due %s", waits, n, p.Due)
	}
	for range 30 {
		b.Round()
		b.Tick(20 * time.Second).Deliver()
	}
	p = b.Plan()
	for i := range n {
		if d := Of(p, fmt.Sprintf("vision/high-%d", i)); d.Action != planner.Keep {
			t.Errorf("high-%d: %s %s", i, d.Action, d.Reason)
		}
	}
}

// What was decided by the rules of before is decided so again.
func TestWorkOfVictims_OlderRules(t *testing.T) {
	b := fullWorld(20)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 })
	b.W.Rules = draft.RulesTogetherCounted - 1
	p, did := planner.CountWork(b.W)
	if did.Parts != 0 {
		t.Errorf("%d looks are counted", did.Parts)
	}
	for i := range 20 {
		if d := Of(p, fmt.Sprintf("vision/high-%d", i)); strings.Contains(d.Reason, "looked for") {
			t.Errorf("%s", d.Reason)
		}
	}
}
