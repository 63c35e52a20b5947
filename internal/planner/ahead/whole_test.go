package ahead_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

const day = 24 * time.Hour

// three providers: one has room for four replicas and is expensive, one for one that is the
// cheapest and more that are not, one for four at little more.
func three() *plantest.Builder {
	return plantest.New().Consumer("rome").Provider("athens", "berlin", "cadiz").Tenant("vision", "rome", mayBook).
		Offer("athens/h100", plantest.Cards("nvidia-h100", 32, "80Gi"), plantest.Costs("10")).
		Offer("berlin/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("1")).
		Offer("berlin/more", plantest.Cards("nvidia-h100", 24, "80Gi"), plantest.Costs("9")).
		Offer("cadiz/h100", plantest.Cards("nvidia-h100", 32, "80Gi"), plantest.Costs("2"))
}

// Replicas that share a domain are booked where all of them are cheapest, by whichever policy,
// and where the first's best offer is no longer decides; by the rules before 23 it did.
func TestBooked_InTheBestDomainForAll(t *testing.T) {
	for name, c := range map[string]struct {
		rules  int
		change func(*v1alpha1.IntentSpec)
		want   string
	}{
		"a written gang": {0, func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(true) }, "cadiz/h100"},
		"by default":     {0, func(*v1alpha1.IntentSpec) {}, "cadiz/h100"},
		"preferred": {0, func(s *v1alpha1.IntentSpec) {
			s.Placement.Within = &v1alpha1.Within{By: "provider", Policy: v1alpha1.WithinPreferred}
		}, "cadiz/h100"},
		"no gang": {0, func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(false) }, "berlin/h100 cadiz/h100"},
		"no gang, preferred": {0, func(s *v1alpha1.IntentSpec) {
			s.Gang, s.Placement.Within = plantest.Ptr(false), &v1alpha1.Within{By: "provider", Policy: v1alpha1.WithinPreferred}
		}, "cadiz/h100"},
		"wherever":          {0, func(s *v1alpha1.IntentSpec) { s.Placement.Within = &v1alpha1.Within{Policy: v1alpha1.WithinNone} }, "berlin/h100 cadiz/h100"},
		"gang by rules 22":  {draft.RulesBookedWhole - 1, func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(true) }, "berlin/h100 berlin/more"},
		"preferred by them": {draft.RulesBookedWhole - 1, func(*v1alpha1.IntentSpec) {}, "berlin/h100 cadiz/h100"},
	} {
		b := three().Intent("vision/train", plantest.Wants(8, "H100"), plantest.Times(4), books(day, day), plantest.With(func(s *v1alpha1.IntentSpec) {
			s.Objective = v1alpha1.Cost
			c.change(s)
		}))
		b.W.Rules = c.rules
		p := b.Round()
		var at []string
		for _, c := range contractsOf(b, "vision/train") {
			at = append(at, c.Spec.Provider+"/"+c.Spec.Flavor)
		}
		slices.Sort(at)
		if got := strings.Join(slices.Compact(at), " "); got != c.want || len(at) != 4 {
			t.Errorf("%s: %d are booked on %q, want 4 on %q", name, len(at), got, c.want)
		}
		d := plantest.Of(p, "vision/train")
		if want := "all in provider cadiz, chosen of 3 with room for all"; name == "a written gang" && !strings.Contains(d.Also, want) {
			t.Errorf("%s: it says %q, want %q", name, d.Also, want)
		}
	}
}

// What is suggested for replicas that find no room together does it, and does not count what
// they took themselves while it was tried.
func TestBooked_SuggestionsDo(t *testing.T) {
	onCadiz := func(s *v1alpha1.IntentSpec) {
		s.Placement.Providers.Allow = []string{"cadiz"}
	}
	for name, c := range map[string]struct {
		n         int32
		change    func(*v1alpha1.IntentSpec)
		near, try string
	}{
		"too many for any": {30, func(s *v1alpha1.IntentSpec) { s.Gang = plantest.Ptr(true) }, "provider cadiz has room for 4 of 30 replicas, 26 missing", "replicas: 4"},
		"too many for one": {6, onCadiz, "cadiz/h100 has room for 4 of 6 replicas during the term", "replicas: 4"},
		"later":            {4, onCadiz, "cadiz/h100 has room for 3 of 4 replicas during the term", "replicas: 3|schedule.notBefore: 2026-11-23T12:00:00Z  # cadiz/h100 is free then"},
		"costs more":       {2, func(s *v1alpha1.IntentSpec) { s.Budget = &v1alpha1.IntentBudget{MaxHourly: plantest.Money("1")} }, "cadiz/h100 costs 32.00 EUR/h, 768.00 in all", `budget.maxHourly: "32.00"`},
		"costs more in all": {2, func(s *v1alpha1.IntentSpec) {
			s.Budget = &v1alpha1.IntentBudget{MaxHourly: plantest.Money("1"), MaxTotal: plantest.Money("9")}
		}, "cadiz/h100 costs 32.00 EUR/h, 768.00 in all", `budget: {maxHourly: "32.00", maxTotal: "768.00"}`},
		"costs more per card": {1, func(s *v1alpha1.IntentSpec) {
			s.Budget = &v1alpha1.IntentBudget{MaxHourlyPerGPU: plantest.Money("0.5")}
		}, "berlin/h100 costs 8.00 EUR/h, 192.00 in all", `budget.maxHourlyPerGPU: "1.00"`},
	} {
		b := three()
		if name == "later" {
			b.Intent("vision/first", plantest.Wants(8, "H100"), books(day/2, 5*day/2), plantest.With(onCadiz)).Round()
		}
		b.Intent("vision/train", plantest.Wants(8, "H100"), plantest.Times(c.n), books(day, day), plantest.With(c.change))
		d := plantest.Of(b.Plan(), "vision/train")
		if d.Action != planner.Queued || !slices.Contains(d.Near, c.near) || strings.Join(d.Try, "|") != c.try {
			t.Errorf("%s: %s, near %q, try %q; want near %q, try %q", name, d.Action, d.Near, d.Try, c.near, c.try)
		}
	}
}

// What books a term that is over is refused; by the rules before 23 it ran from then on.
func TestBooked_TermThatIsOver(t *testing.T) {
	for _, rules := range []int{0, draft.RulesBookedWhole - 1} {
		b := three().Intent("vision/train", plantest.Wants(8, "H100"), books(day, day))
		b.W.Rules = rules
		p := b.Tick(2*day + time.Hour).Deliver().Round()
		d, n := plantest.Of(p, "vision/train"), len(contractsOf(b, "vision/train"))
		if late := rules == 0; (d.Action == planner.Refuse && n == 0) != late || late && !strings.Contains(d.Reason, "ended 2026-11-22T12:00:00Z before any of it began") {
			t.Errorf("rules %d: %s with %d contracts: %s", rules, d.Action, n, d.Reason)
		}
	}
}
