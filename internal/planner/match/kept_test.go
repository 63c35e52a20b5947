package match_test

import (
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// What Trim leaves keeps to the budget, also where nobody has a candidate: classes that no
// offer meets take lists of which fact each offer fails, one for each set of facts.
func TestTrim_KeepsToTheBudgetWhereNothingFits(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("t", "rome")
	for i := range 64 {
		b.Offer(fmt.Sprintf("paris/f%d", i), Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
	}
	for i := range 200 {
		b.Intent(fmt.Sprintf("t/i%d", i), Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Regions = []string{fmt.Sprintf("invented-%d", i)} }))
	}
	b.Intent("t/fits", Wants(1, "H100"))
	m := matcherOf(t, b.W)
	m.Budget = 16 << 10
	for i := range b.W.Intents {
		s := m.Class(ask(b.W.Intents[i], match.NoSpendLimits()))
		m.Refresh(s)
		if m.Trim(); m.Held() > m.Budget {
			t.Fatalf("after %d classes %d bytes are held of %d", i+1, m.Held(), m.Budget)
		}
	}
}
