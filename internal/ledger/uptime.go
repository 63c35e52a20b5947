package ledger

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Uptime is how long a contract was usable since it first was: it is usable
// when it becomes Active, and until it is Degraded. The zero value is that of a
// contract that was not usable yet.
type Uptime struct {
	// Since when it is, or was, usable; zero when it never was.
	Since v1alpha1.Time

	last   v1alpha1.Time
	broken bool
	down   time.Duration
}

// Step takes the phase that a contract is in at an instant, not before the last
// one, and reports whether it is usable for the first time.
func (u *Uptime) Step(phase v1alpha1.Phase, at v1alpha1.Time) (first bool) {
	if !u.Since.IsZero() && u.broken {
		u.down += at.Sub(u.last.Time)
	}
	first = u.Since.IsZero() && phase == v1alpha1.PhaseActive
	if first {
		u.Since = at
	}
	u.last, u.broken = at, phase == v1alpha1.PhaseDegraded
	return first
}

// Short says how a contract was usable for less of the time, up to the last
// step, than its sla asks for; "" when it was not.
func (u *Uptime) Short(sla *v1alpha1.SLA) string {
	if sla == nil || sla.Availability == nil || u.Since.IsZero() || u.down == 0 {
		return ""
	}
	whole := int64(u.last.Sub(u.Since.Time) / time.Second)
	good := v1alpha1.DecimalFromInt(100*(whole-int64(u.down/time.Second))).DivInt(max(whole, 1), 4)
	if good.Cmp(*sla.Availability) >= 0 {
		return ""
	}
	return fmt.Sprintf("SLABroken: usable %s %% of %s since it first was, %s %% was asked for", good, u.last.Sub(u.Since.Time), sla.Availability)
}

// FirstShort is the first change of phase with which a contract broke its sla's
// availability, and how; nil when none did, or when the file has more changes
// behind it than it keeps, so that the beginning is not known.
func FirstShort(c *v1alpha1.Contract, sla *v1alpha1.SLA) (*v1alpha1.PhaseChange, string) {
	h := c.Status.History
	if len(h) == 0 || !h[0].At.Equal(c.Spec.Term.Start.Time) {
		return nil, ""
	}
	var u Uptime
	for i := range h {
		u.Step(h[i].Phase, h[i].At)
		if why := u.Short(sla); why != "" {
			return &h[i], why
		}
	}
	return nil, ""
}
