package ledger_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// TestBreach_OfBookings: what was booked is late by its start, as any contract is by its
// reservation, and never before it, though it was booked long ago or delivered early.
func TestBreach_OfBookings(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) v1alpha1.Time { return v1alpha1.TimeOf(start.Add(d)) }
	sla := &v1alpha1.SLA{MaxTimeToActive: v1alpha1.Duration{Duration: 5 * time.Minute}}
	booking := func(active time.Duration) *v1alpha1.Contract {
		c := &v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Term: v1alpha1.Term{Start: at(0), End: at(time.Hour)}}}
		c.Status.History = []v1alpha1.PhaseChange{{Phase: v1alpha1.PhaseBooked, At: at(-24 * time.Hour)}, {Phase: v1alpha1.PhaseReserved, At: at(-10 * time.Minute)}}
		c.Status.Phase = v1alpha1.PhaseReserved
		if active != 0 {
			c.Status.Phase = v1alpha1.PhaseActive
			c.Status.History = append(c.Status.History, v1alpha1.PhaseChange{Phase: v1alpha1.PhaseActive, At: at(active)})
		}
		return c
	}
	for after, want := range map[time.Duration]string{-time.Minute: "", 5 * time.Minute: "", 6 * time.Minute: ledger.BreachLate} {
		if kind, why := ledger.Breach(booking(0), sla, nil, at(after)); kind != want {
			t.Errorf("%v after its start: %q, %s; want %q", after, kind, why, want)
		}
	}
	for active, want := range map[time.Duration]time.Duration{-time.Minute: 0, time.Minute: 0, 7 * time.Minute: 7 * time.Minute} {
		c := booking(active)
		if got := ledger.LateBy(c, sla, c.Status.History[2]); got != want {
			t.Errorf("usable %v after its start: late by %v, want %v", active, got, want)
		}
	}
}
