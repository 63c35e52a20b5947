package match_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// A class that was replaced while the future was looked at comes back with what it knew
// before, and is still to take in what offers report since.
func TestClass_ComesBackAsItWas(t *testing.T) {
	w := New().Consumer("rome").Provider("paris").Tenant("ada", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"), Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = true })).
		Intent("ada/train", Wants(1, "H100"))
	m, asked := matcherOf(t, w.W), ask(w.W.Intents[0], match.NoSpendLimits())
	fits := func() bool {
		t.Helper()
		s := m.Class(asked)
		m.Refresh(s)
		return s.Fitting == 1
	}
	if fits() {
		t.Fatal("an offer fits that sells nothing new")
	}
	w.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = false }))
	m.Reported(0, w.W.Offers[0])
	back := m.Imagine()
	if !fits() {
		t.Error("it does not fit in the future")
	}
	back()
	if !fits() {
		t.Error("it does not fit after the future was looked at")
	}
}

// A class that is listed again at another time has the prices that it had: whether a list
// was evicted meanwhile decides nothing.
func TestClass_ListedAgainIsPricedAsItWas(t *testing.T) {
	w := New().Consumer("rome").Provider("paris").Tenant("ada", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"), func(o *model.Offer) {
			o.Price.Windows = []v1alpha1.PriceWindow{{
				Window:  v1alpha1.Window{From: "20:00", To: "06:00", Timezone: "Europe/Rome"},
				PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("0.5")},
			}}
		}).
		Intent("ada/train", Wants(1, "H100"))
	m, asked := matcherOf(t, w.W), ask(w.W.Intents[0], match.NoSpendLimits())
	s := m.Class(asked)
	m.Refresh(s)
	was := s.Candidates[0].Quote.Current()
	m.Budget = 0
	for hour := range 24 {
		back := m.Imagine()
		m.SetNow(v1alpha1.TimeOf(w.W.Now.Add(time.Duration(hour) * time.Hour)))
		m.Trim()
		m.Refresh(s)
		if got := s.Candidates[0].Quote.Current(); got != was {
			t.Errorf("listed again %d hours later it costs %v, and %v before", hour, got, was)
		}
		back()
	}
}
