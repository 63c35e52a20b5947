package ledger

import (
	"fmt"
	"strings"
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
	if !fromItsBeginning(c) {
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

// fromItsBeginning reports whether a contract's file has all of its history: from the
// reservation on, which is the start of its term, or from when it was booked.
func fromItsBeginning(c *v1alpha1.Contract) bool {
	h := c.Status.History
	return len(h) > 0 && (h[0].At.Equal(c.Spec.Term.Start.Time) || h[0].Phase == v1alpha1.PhaseBooked)
}

// Kinds of breaches of an intent's sla.
const (
	// BreachLate: a contract is not usable yet and takes longer than maxTimeToActive.
	BreachLate = "late"
	// BreachAvailability: a contract was usable for less of the time than availability asks
	// for, an outage that goes on counted to now.
	BreachAvailability = "availability"
)

// Breach is how a contract breaks an sla at an instant, and in words; both "" when it does
// not, when it is not charged any more, or when its file has lost the beginning of its
// history. seen is a phase that it was seen in since, and that is not committed yet; nil
// for none.
func Breach(c *v1alpha1.Contract, sla *v1alpha1.SLA, seen *v1alpha1.PhaseChange, now v1alpha1.Time) (kind, why string) {
	h := c.Status.History
	phase := c.Status.Phase
	if seen != nil {
		phase = seen.Phase
	}
	if sla == nil || !phase.Charged() || !fromItsBeginning(c) {
		return "", ""
	}
	var u Uptime
	for i := range h {
		u.Step(h[i].Phase, h[i].At)
	}
	if seen != nil && !seen.At.Before(u.last.Time) {
		u.Step(seen.Phase, seen.At)
	}
	if most := sla.MaxTimeToActive.Duration; most > 0 && u.Since.IsZero() {
		if took := now.Sub(c.Spec.Term.Start.Time); took > most {
			return BreachLate, fmt.Sprintf("not usable within %s: it takes %s so far", most, took)
		}
	}
	u.Step(phase, now)
	if why := u.Short(sla); why != "" {
		return BreachAvailability, strings.TrimPrefix(why, "SLABroken: ")
	}
	return "", ""
}

// LateBy is how long a contract took until it was usable for the first time, where that
// was at a change of phase and longer than its sla asks for; 0 else.
func LateBy(c *v1alpha1.Contract, sla *v1alpha1.SLA, p v1alpha1.PhaseChange) time.Duration {
	h := c.Status.History
	if sla == nil || sla.MaxTimeToActive.Duration <= 0 || !fromItsBeginning(c) {
		return 0
	}
	var u Uptime
	for i := range h {
		if u.Step(h[i].Phase, h[i].At) && h[i] == p {
			if took := p.At.Sub(c.Spec.Term.Start.Time); took > sla.MaxTimeToActive.Duration {
				return took
			}
		}
	}
	return 0
}
