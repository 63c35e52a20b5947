package ledger_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func TestExpiring(t *testing.T) {
	start := v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	after := func(d time.Duration) v1alpha1.Time { return v1alpha1.TimeOf(start.Add(d)) }
	for name, c := range map[string]struct {
		term  time.Duration // 0: open-ended
		phase v1alpha1.Phase
		at    time.Duration
		want  bool
	}{
		"open-ended":                        {0, v1alpha1.PhaseActive, 1000 * time.Hour, false},
		"just begun":                        {10 * time.Hour, v1alpha1.PhaseActive, 0, false},
		"a second before the last tenth":    {10 * time.Hour, v1alpha1.PhaseActive, 9*time.Hour - time.Second, false},
		"the last tenth":                    {10 * time.Hour, v1alpha1.PhaseActive, 9 * time.Hour, true},
		"a long term: its last day":         {720 * time.Hour, v1alpha1.PhaseDegraded, 696 * time.Hour, true},
		"a long term: the day before":       {720 * time.Hour, v1alpha1.PhaseActive, 695 * time.Hour, false},
		"over, and not yet seen to":         {10 * time.Hour, v1alpha1.PhaseActive, 11 * time.Hour, true},
		"what is being released is no news": {10 * time.Hour, v1alpha1.PhaseReleasing, 9 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			one := &v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Term: v1alpha1.Term{Start: start}}}
			if one.Status.Phase = c.phase; c.term > 0 {
				one.Spec.Term.End = after(c.term)
			}
			if got := ledger.Expiring(one, after(c.at)); got != c.want {
				t.Errorf("expiring: %v", got)
			}
		})
	}
}
