package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Fewer than minReplicas are not placed, whatever the objective; by the rules before 23 they
// were. What falls below by loss is kept, and goes up again as far as it can.
func TestMinReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		rules, room, n, least, want int
		objective                   v1alpha1.Objective
	}{
		"too few":          {0, 4, 5, 5, 0, ""},
		"too few, by cost": {0, 4, 6, 5, 0, v1alpha1.Cost},
		"just enough":      {0, 4, 6, 4, 4, ""},
		"enough, by cost":  {0, 4, 6, 3, 4, v1alpha1.Cost},
		"none is said":     {0, 4, 5, 0, 4, ""},
		"by rules 22":      {draft.RulesMinReplicas - 1, 4, 5, 5, 4, ""},
	} {
		b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome").
			Offer("paris/h100", Cards("nvidia-h100", 8*(c.room-1), "80Gi"), Costs("1")).
			Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2")).
			Intent("vision/some", Wants(8, "H100"), Times(int32(c.n)), With(func(s *v1alpha1.IntentSpec) {
				s.Gang, s.MinReplicas, s.Objective = Ptr(false), int32(c.least), c.objective
			}))
		b.W.Rules = c.rules
		p := b.Round()
		if got := len(b.Contracts("vision/some")); got != c.want {
			t.Errorf("%s: %d are placed, want %d\n%s", name, got, c.want, describe(p))
		}
		wantOnlyKeeps(t, b)
		if name != "just enough" {
			continue
		}
		b.Tick(time.Minute).Deliver().Round()
		b.Drop("oslo/h100").Tick(24 * time.Hour)
		if p := b.Round(); len(b.Contracts("vision/some")) < 3 || Of(p, "vision/some").Action == planner.Refuse {
			t.Errorf("%s: after a loss %d are left\n%s", name, len(b.Contracts("vision/some")), describe(p))
		}
	}
}
