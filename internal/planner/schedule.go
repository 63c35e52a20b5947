package planner

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// openAt reports whether any of an intent's windows is open at t, until when
// without a gap, and, when none is, when the next opens. Without windows it is
// always open.
func openAt(books ledger.Books, windows []v1alpha1.Window, t v1alpha1.Time) (open bool, until, next v1alpha1.Time) {
	if len(windows) == 0 {
		return true, until, next
	}
	// Windows may touch or overlap: follow them until none is open.
	end := t
	for moved := true; moved; {
		moved = false
		for _, w := range windows {
			is, edge := books.InWindow(w, end)
			switch {
			case !is:
				if !open && !edge.IsZero() && (next.IsZero() || edge.Before(next.Time)) {
					next = edge
				}
			case edge.IsZero() || edge.Sub(t.Time) > 8*24*time.Hour:
				return true, v1alpha1.Time{}, v1alpha1.Time{} // all week
			default:
				open, moved, end = true, true, edge
			}
		}
	}
	if open {
		return true, end, v1alpha1.Time{}
	}
	return false, v1alpha1.Time{}, next
}

// firstStart is the earliest instant at which an intent may have capacity, as
// its schedule says.
func (r *round) firstStart(j *job) v1alpha1.Time {
	s, at := &j.in.Spec.Schedule, r.now
	if s.NotBefore.After(at.Time) {
		at = s.NotBefore
	}
	if open, _, next := openAt(r.books, s.Windows, at); !open && next.After(at.Time) {
		at = next
	}
	return at
}

// startsTooLate is why an intent that has not begun, and may not before at, never
// will: what is left until its deadline is too short then; "" where it is not.
func (r *round) startsTooLate(j *job, at v1alpha1.Time) string {
	if !j.started.IsZero() || !at.After(r.now.Time) {
		return ""
	}
	why := ""
	switch life := r.lifeEnd(j, at); {
	case life.code == CodeDeadline:
		why = life.refused
	case !life.end.IsZero() && !life.end.After(at.Time):
		why = "its deadline is " + stamp(life.end) + ": move schedule.deadline or open a window before it"
	default:
		return ""
	}
	return "it cannot start before " + stamp(at) + " (notBefore, windows), and " + why
}

// term is when an intent's contracts begin and end if they begin at start.
type term struct {
	end v1alpha1.Time
	// seconds from start to end, 0 when open-ended.
	seconds int64
	// refused says why no term fits.
	refused, code string
}

// earlier is the earlier of two ends; zero is open-ended.
func earlier(a, b v1alpha1.Time) v1alpha1.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a.Time)) {
		return b
	}
	return a
}

// lifeEnd is when an intent's term ends for good, windows aside: its duration
// counted from started (wall-clock time from the reservation), and the
// deadline where there is no duration. A duration that ends after the deadline
// is refused.
func (r *round) lifeEnd(j *job, started v1alpha1.Time) term {
	s := &j.in.Spec.Schedule
	duration := s.Duration.Duration
	if duration == 0 {
		duration = r.fleet.Defaults.Duration.Duration
	}
	var t term
	if q := j.tenant.Spec.Quota; q != nil && q.MaxDuration.Duration > 0 {
		limit := q.MaxDuration
		switch {
		case duration == 0 && s.Deadline.IsZero():
			t.refused, t.code = "the tenant's intents may last "+limit.String()+" at most: set schedule.duration", CodeMaxDuration
		case duration > limit.Duration, duration == 0 && s.Deadline.Sub(started.Time) > limit.Duration:
			t.refused, t.code = "it would last longer than the tenant's maxDuration of "+limit.String()+": shorten schedule.duration", CodeMaxDuration
		}
	}
	if duration > 0 {
		t.end = v1alpha1.TimeOf(started.Add(duration))
		if !s.Deadline.IsZero() && t.end.After(s.Deadline.Time) {
			t.refused = "its duration of " + v1alpha1.Duration{Duration: duration}.String() + " no longer fits before the deadline " + stamp(s.Deadline) + ": move schedule.deadline or shorten schedule.duration"
			t.code = CodeDeadline
		}
	} else {
		t.end = s.Deadline
	}
	if !t.end.IsZero() {
		t.seconds = int64(t.end.Sub(started.Time) / time.Second)
	}
	return t
}

func stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
