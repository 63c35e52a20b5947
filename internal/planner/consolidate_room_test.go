package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// An intent that may have either card moves to the cheaper one, unless it would take the last
// room of who may have that alone; by the rules before 23 it did.
func TestConsolidation_TakesNoLastRoom(t *testing.T) {
	for name, c := range map[string]struct {
		rules, t4s, elsewhere int
		moves                 bool
	}{
		"one is left":              {0, 3, 0, true},
		"the last":                 {0, 2, 0, false},
		"the last by rules 22":     {22, 2, 0, true},
		"the last but one offer":   {0, 2, 1, false},
		"one is left in both":      {0, 3, 1, true},
		"the last of three offers": {0, 2, 2, true},
	} {
		b := New().Consumer("rome").Provider("paris", "lyon", "nice").Tenant("vision", "rome").
			Fleet(consolidating("apply", "0.1", 30*time.Minute)).
			Offer("paris/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("4")).
			Intent("vision/either", Wants(1, "T4", "L4"), cheapest)
		b.W.Rules = c.rules
		b.Round()
		b.Offer("paris/t4", Cards("nvidia-t4", c.t4s, "16Gi"), Costs("1")).Intent("vision/one", Wants(1, "T4"), cheapest)
		for i := range c.elsewhere {
			b.Offer([]string{"lyon/t4", "nice/t4"}[i], Cards("nvidia-t4", 1, "16Gi"), Costs("3.9"))
		}
		b.Tick(time.Minute).Deliver().Round()
		b.Tick(time.Minute).Deliver().Round()
		b.Tick(31 * time.Minute)
		p := b.Round()
		if got := Of(p, "vision/either").Code == lifecycle.CodeConsolidated; got != c.moves {
			t.Errorf("%s: moves %v, want %v\n%s", name, got, c.moves, describe(p))
		}
		if !c.moves && len(Of(p, "vision/either").Proposals) != 1 {
			t.Errorf("%s: it is proposed no more: %+v", name, Of(p, "vision/either"))
		}
		wantOnlyKeeps(t, b)
		if !c.moves { // and once it is not the last any more
			b.Offer("paris/t4", Cards("nvidia-t4", 3, "16Gi"))
			if p := b.Round(); Of(p, "vision/either").Action != planner.Move {
				t.Errorf("%s: with room for others too it stays\n%s", name, describe(p))
			}
		}
	}
}
