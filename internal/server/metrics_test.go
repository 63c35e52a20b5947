package server

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// TestEveryDocumentedMetricMoves: all that FORMATS promises, by name and labels.
// That the rooms tell them what happens is tried where they are joined.
func TestEveryDocumentedMetricMoves(t *testing.T) {
	m := NewMetrics()
	for _, c := range []struct {
		series string
		move   func()
	}{
		{`fleetbroker_reservations_total{phase="Active",requester="rome"}`, func() { m.Reservation(v1alpha1.PhaseActive, "rome") }},
		{`fleetbroker_rounds_total{outcome="error"}`, func() { m.Round("error") }},
		{`fleetbroker_decision_seconds_count`, func() { m.Decision(time.Millisecond) }},
		{`fleetbroker_commit_seconds_count`, func() { m.Commit(time.Second) }},
		{`fleetbroker_push_conflicts_total`, m.PushConflict},
		{`fleetbroker_planner_faults_total`, m.PlannerFault},
		{`fleetbroker_planner_step_seconds_count{step="settle"}`, func() { m.PlannerStep("settle", time.Millisecond) }},
		{`fleetbroker_planner_checks_total{result="different"}`, func() { m.PlannerCheck("different", 1<<20) }},
		{`fleetbroker_planner_check_bytes`, func() { m.PlannerCheck("equal", 2<<20) }},
		{`fleetbroker_planner_check_limit_bytes`, func() { m.PlannerCheckLimit(1 << 30) }},
		{`fleetbroker_advert_total{cluster="paris",result="accepted"}`, func() { m.Advert("paris", "accepted") }},
		{`fleetbroker_time_to_reserve_seconds_count`, func() { m.TimeToReserve(time.Second, "") }},
		{`fleetbroker_time_to_active_seconds_count`, func() { m.TimeToActive(time.Minute, "") }},
		{`fleetbroker_spend_total{currency="EUR",tenant="vision"}`, func() { m.SetSpend([]Sum{{"vision", "EUR", v1alpha1.MustDecimal("2")}}) }},
		{`fleetbroker_savings{currency="EUR",tenant="vision"}`, func() { m.SetSavings([]Sum{{"vision", "EUR", v1alpha1.MustDecimal("1")}}) }},
		{`fleetbroker_contracts_expiring{tenant="vision"}`, func() { m.SetExpiring(map[string]int{"vision": 2}) }},
	} {
		before := value(t, scrape(t, m), c.series)
		c.move()
		if after := value(t, scrape(t, m), c.series); after <= before {
			t.Errorf("%s went from %g to %g", c.series, before, after)
		}
	}
}

// TestLevelsAreReplaced: a tenant that is gone leaves no series behind.
func TestLevelsAreReplaced(t *testing.T) {
	m := NewMetrics()
	m.SetExpiring(map[string]int{"vision": 2, "nlp": 1})
	m.SetExpiring(map[string]int{"nlp": 3})
	text := scrape(t, m)
	if value(t, text, `fleetbroker_contracts_expiring{tenant="nlp"}`) != 3 || strings.Contains(text, `contracts_expiring{tenant="vision"}`) {
		t.Error(text)
	}
}

// TestMoney: a counter that falls is taken for one that began again, so that spend stands
// still where a contract ended a moment before it was counted; savings are no counter, and
// fall where a price window costs more than the list says.
func TestMoney(t *testing.T) {
	m := NewMetrics()
	for _, c := range []struct{ spend, saved, wantSpend, wantSaved string }{
		{"100", "20", "100", "20"},
		{"99.5", "18", "100", "18"},
		{"101", "-1", "101", "-1"},
	} {
		m.SetSpend([]Sum{{"vision", "EUR", v1alpha1.MustDecimal(c.spend)}})
		m.SetSavings([]Sum{{"vision", "EUR", v1alpha1.MustDecimal(c.saved)}})
		text := scrape(t, m)
		for _, want := range []string{`fleetbroker_spend_total{currency="EUR",tenant="vision"} ` + c.wantSpend, `fleetbroker_savings{currency="EUR",tenant="vision"} ` + c.wantSaved, "# TYPE fleetbroker_savings gauge"} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("spend %s, saved %s: no %s", c.spend, c.saved, want)
			}
		}
	}
	m.SetSpend(nil)
	if strings.Contains(scrape(t, m), "fleetbroker_spend_total{") {
		t.Error("a tenant that is gone is still shown")
	}
}

// value is a series' in a scrape, 0 when it is not there yet.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	_, rest, there := strings.Cut("\n"+text, "\n"+series+" ")
	if !there {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
