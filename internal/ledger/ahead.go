package ledger

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Capacity on the time axis. A booking (phase Booked) takes capacity for its term alone,
// [start, end), which has not begun; a held contract takes it from now until its end, and
// permanently where it has none. What is taken of a flavor rises at the starts of
// bookings alone, so that those instants, and now, are all that have to be looked at.

// Book makes c, which nobody has seen yet, a booking as of now.
func Book(c *v1alpha1.Contract, reason Reason, now v1alpha1.Time) {
	begin(c, v1alpha1.PhaseBooked, reason, now)
}

// Cancel is a copy of a booking that ends before its term begins, at Released, Expired or
// Failed. Nothing of it exists, so nothing is to be drained. charged: its tenant pays
// for the whole term, each month's part in that month.
func (b Books) Cancel(c *v1alpha1.Contract, target v1alpha1.Phase, reason Reason, charged bool, now v1alpha1.Time) (*v1alpha1.Contract, error) {
	next, err := b.Transition(c, target, reason, now)
	if err != nil {
		return nil, err
	}
	next.Status.Target = target
	if charged {
		next = b.ChargeTerm(next)
	}
	return next, nil
}

// ChargeTerm is a copy of a contract, of whose term nothing is charged yet, with the price of
// all of it written down.
func (b Books) ChargeTerm(c *v1alpha1.Contract) *v1alpha1.Contract {
	c = clone(c)
	c.Status.Months = addMonths(c.Status.Months, b.cost(c.Spec.Price, c.Spec.Term.Start, c.Spec.Term.End))
	sum := v1alpha1.Zero
	for _, m := range c.Status.Months {
		sum = sum.Add(m.Amount)
	}
	c.Status.Accrued = &sum
	return c
}

// ReasonsCharged reports whether a booking that ends for a reason was cancelled by its
// tenant: then the fleet's bookings.freeUntil decides whether it costs.
func ReasonsCharged(code string) bool {
	switch code {
	case "IntentRemoved", "Suspended", "IntentChanged", "FewerReplicas", "StageFind":
		return true
	}
	return false
}

// CancelCosts reports whether cancelling a booking for a reason costs its term, by the
// fleet's rule, whether or not it is delivered already (bookings.lead). Nothing costs what the fleet cannot keep, or has not begun in time.
func CancelCosts(rule *v1alpha1.Bookings, c *v1alpha1.Contract, code string, now v1alpha1.Time) bool {
	if c.Status.Reason == "BookingShort" || !now.Before(c.Spec.Term.Start.Time) { // the fleet cannot keep it
		return false
	}
	free := rule.FreeUntil.Duration
	return free > 0 && ReasonsCharged(code) && !now.Before(c.Spec.Term.Start.Add(-free))
}

// TakesAt reports whether c takes capacity at an instant that is not in the past.
// What is being released counts as gone by any later one.
func TakesAt(c *v1alpha1.Contract, at v1alpha1.Time) bool {
	t := c.Spec.Term
	switch {
	case c.Status.Phase == v1alpha1.PhaseBooked:
		return !t.Start.After(at.Time) && t.End.After(at.Time)
	case c.Status.Phase.Charged():
		return t.End.IsZero() || t.End.After(at.Time)
	}
	return false
}

// Starts are the instants from from on and before to (zero: no bound) at which bookings
// among contracts begin, in order; those that should have begun before count as from.
func Starts(contracts []*v1alpha1.Contract, from, to v1alpha1.Time) []v1alpha1.Time {
	var out []v1alpha1.Time
	for _, c := range contracts {
		if c.Status.Phase != v1alpha1.PhaseBooked || !c.Spec.Term.End.After(from.Time) {
			continue
		}
		at := c.Spec.Term.Start
		if at.Before(from.Time) {
			at = from
		}
		if to.IsZero() || at.Before(to.Time) {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Time) int { return a.Compare(b.Time) })
	return slices.Compact(out)
}

// At is a flavor with what takes capacity of it at an instant that is not in the past:
// contracts are all that hold or have booked it. What is reported of a contract that
// will have ended does not count.
func At(f *v1alpha1.Flavor, contracts []*v1alpha1.Contract, at v1alpha1.Time) Member {
	return takenAt(f, contracts, at, false)
}

// Later is At of an instant in the future: what is reported of contracts does not count at
// all then. One that was made smaller counts at its size, whatever its provider still grants
// it, as one that is being released counts as gone.
func Later(f *v1alpha1.Flavor, contracts []*v1alpha1.Contract, at v1alpha1.Time) Member {
	return takenAt(f, contracts, at, true)
}

func takenAt(f *v1alpha1.Flavor, contracts []*v1alpha1.Contract, at v1alpha1.Time, asSold bool) Member {
	m := Member{Flavor: f}
	reported := f.Spec.Held
	for _, c := range contracts {
		if TakesAt(c, at) {
			m.Held = append(m.Held, c)
			if !asSold {
				continue
			}
		}
		if _, lingers := reported[c.Metadata.Name]; !lingers {
			if _, lingers = reported[c.Spec.Slice]; !lingers {
				continue
			}
		}
		if len(reported) == len(f.Spec.Held) {
			reported = maps.Clone(reported)
		}
		delete(reported, c.Metadata.Name)
		delete(reported, c.Spec.Slice)
	}
	if len(reported) != len(f.Spec.Held) {
		then := *f
		then.Spec.Held = reported
		m.Flavor = &then
	}
	return m
}
