package planner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// movedFor are the intents of which a contract moves in a plan, so that another finds a place.
func movedFor(p *planner.Plan) (refs []string) {
	for _, d := range p.Intents {
		if strings.HasPrefix(d.Reason, "makes room for ") {
			refs = append(refs, d.Tenant+"/"+d.Name)
		}
	}
	return refs
}

// Two wait, and their tenant may have one of them: one contract moves.
func TestMakesRoom_WithinTenant(t *testing.T) {
	for name, limit := range map[string]func(s *v1alpha1.TenantSpec){
		"quota":  func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(3))} },
		"hourly": func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: Money("4.2")} },
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "lyon").Tenant("nlp", "rome", limit).
				Fleet(consolidating("apply", "0.5", 30*time.Minute)).
				Offer("paris/t4", Cards("nvidia-t4", 2, "16Gi"), Costs("1")).
				Offer("lyon/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("1.4")).
				Intent("nlp/a", Wants(1, "T4", "L4"), cheapest).
				Intent("nlp/b", Wants(1, "T4", "L4"), cheapest)
			settled(b).Tick(28*time.Minute).Intent("nlp/one", Wants(1, "T4"), cheapest).Intent("nlp/two", Wants(1, "T4"), cheapest)
			p := b.Round()
			if moved := movedFor(p); !slices.Equal(moved, []string{"nlp/a"}) {
				t.Fatalf("%s move, want nlp/a alone\n%s", moved, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}
