package lifecycle

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Codes of a schedule that has no term.
const (
	CodeDeadline    = "DeadlinePassed"
	CodeMaxDuration = "MaxDuration"
)

// OpenAt reports whether any of an intent's windows is open at t, until when without a
// gap, and, when none is, when the next opens. Without windows it is always open.
func OpenAt(books ledger.Books, windows []v1alpha1.Window, t v1alpha1.Time) (open bool, until, next v1alpha1.Time) {
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

// FirstStart is the earliest instant from now on at which an intent may have capacity,
// by its schedule.
func FirstStart(books ledger.Books, s *v1alpha1.Schedule, now v1alpha1.Time) v1alpha1.Time {
	at := now
	if s.NotBefore.After(at.Time) {
		at = s.NotBefore
	}
	if open, _, next := OpenAt(books, s.Windows, at); !open && next.After(at.Time) {
		at = next
	}
	return at
}

// Bounds are what fleet and tenant state of durations; 0 is unstated.
type Bounds struct {
	// Duration of an intent that names none.
	Duration time.Duration
	// Most is the longest that an intent of the tenant may last.
	Most v1alpha1.Duration
}

// Term is when an intent's contracts end if they begin at an instant.
type Term struct {
	// End is zero when open-ended.
	End v1alpha1.Time
	// Refused is why no term fits, with its code; "" where one does.
	Refused, Code string
}

// Ends reports whether a term is over at an instant.
func (t Term) Ends(at v1alpha1.Time) bool { return !t.End.IsZero() && !t.End.After(at.Time) }

// TermOf is when an intent's term ends for good, windows aside: its duration counted
// from started (wall-clock time from the reservation), and the deadline where there is
// no duration. A duration that ends after the deadline is refused.
func TermOf(s *v1alpha1.Schedule, b Bounds, started v1alpha1.Time) Term {
	duration := s.Duration.Duration
	if duration == 0 {
		duration = b.Duration
	}
	var t Term
	if b.Most.Duration > 0 {
		switch {
		case duration == 0 && s.Deadline.IsZero():
			t.Refused, t.Code = "the tenant's intents may last "+b.Most.String()+" at most: set schedule.duration", CodeMaxDuration
		case duration > b.Most.Duration, duration == 0 && s.Deadline.Sub(started.Time) > b.Most.Duration:
			t.Refused, t.Code = "it would last longer than the tenant's maxDuration of "+b.Most.String()+": shorten schedule.duration", CodeMaxDuration
		}
	}
	if duration <= 0 {
		t.End = s.Deadline
		return t
	}
	t.End = v1alpha1.TimeOf(started.Add(duration))
	if !s.Deadline.IsZero() && t.End.After(s.Deadline.Time) {
		t.Refused = "its duration of " + v1alpha1.Duration{Duration: duration}.String() + " no longer fits before the deadline " + stamp(s.Deadline) + ": move schedule.deadline or shorten schedule.duration"
		t.Code = CodeDeadline
	}
	return t
}

// StartsTooLate is why an intent that has not begun, and may not before at, never will:
// what is left until its deadline is too short then; "" where it is not.
func StartsTooLate(s *v1alpha1.Schedule, b Bounds, at v1alpha1.Time) string {
	why := ""
	switch t := TermOf(s, b, at); {
	case t.Code == CodeDeadline:
		why = t.Refused
	case t.Ends(at):
		why = "its deadline is " + stamp(t.End) + ": move schedule.deadline or open a window before it"
	default:
		return ""
	}
	return "it cannot start before " + stamp(at) + " (notBefore, windows), and " + why
}

// Earlier is the earlier of two ends; zero is open-ended.
func Earlier(a, b v1alpha1.Time) v1alpha1.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a.Time)) {
		return b
	}
	return a
}

func stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
