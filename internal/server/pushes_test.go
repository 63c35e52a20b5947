package server

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// TestPushesAreShown: the budget with what is used of it, and each kind of push from the
// beginning.
func TestPushesAreShown(t *testing.T) {
	figures := pushbudget.Figures{}
	m := NewMetrics()
	if err := m.Register(PushesCollector(func() pushbudget.Figures { return figures })); err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{
		"fleetbroker_push_budget_used":              4,
		"fleetbroker_push_budget_limit":             6,
		"fleetbroker_push_budget_burst":             3,
		"fleetbroker_push_wait_seconds_total":       12.5,
		"fleetbroker_push_held_seconds":             60,
		`fleetbroker_pushes_total{kind="ledger"}`:   7,
		`fleetbroker_pushes_total{kind="proposal"}`: 2,
	}
	text := scrape(t, m)
	for name := range series {
		if got := value(t, text, name); got != 0 {
			t.Errorf("%s is %g without a budget", name, got)
		}
	}
	figures = pushbudget.Figures{
		Limit: pushbudget.Limit{PerMinute: 6, Burst: 3}, Used: 4, Kinds: map[string]uint64{"ledger": 7, "proposal": 2},
		Waited: 12500 * time.Millisecond, Held: time.Minute,
	}
	text = scrape(t, m)
	for name, want := range series {
		if got := value(t, text, name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
}
