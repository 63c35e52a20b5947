// Package months divides what a contract costs over a stretch of time by the calendar months
// of a fleet, for reports of cost.
//
// The parts of a stretch add up to what the ledger writes down for it.
//
// Package audit calls it for each stretch that it reads in the history. Pure functions of
// values, safe for concurrent use.
package months

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Part is what a contract costs in one month.
type Part struct {
	// Month such as 2026-11; From and To bound the part.
	Month    string
	From, To v1alpha1.Time
	// Cost at the contract's price and at list price, in its currency.
	Cost v1alpha1.MonthCost
}

// Of are the parts of what a contract, which has no months written down, costs from when it
// was last settled until end, in order; none where it costs nothing.
func Of(b ledger.Books, c *v1alpha1.Contract, end v1alpha1.Time) (out []Part) {
	cost := b.CostByMonth(c, end)
	for at := c.Status.AccruedAt; at.Before(end.Time); {
		_, next := b.MonthBounds(at)
		if end.Before(next.Time) {
			next = end
		}
		if m, ok := cost[b.Month(at)]; ok {
			out = append(out, Part{Month: b.Month(at), From: at, To: next, Cost: m})
		}
		at = next
	}
	return out
}

// Cancelled are the parts, within [from, until) (zero: unbounded), of what the term of a
// booking costs that a change cancels too late: it was charged whole, before it began. none
// for other changes; before and after may be nil.
func Cancelled(b ledger.Books, before, after *v1alpha1.Contract, from, until v1alpha1.Time) []Part {
	if before == nil || after == nil || len(before.Status.Months) > 0 || len(after.Status.Months) == 0 || !after.Spec.Term.Start.After(after.Status.Since.Time) {
		return nil
	}
	term, end := *after, after.Spec.Term.End
	term.Status.Phase, term.Status.Months, term.Status.Accrued = v1alpha1.PhaseActive, nil, nil
	if term.Status.AccruedAt = term.Spec.Term.Start; term.Status.AccruedAt.Before(from.Time) {
		term.Status.AccruedAt = from
	}
	if !until.IsZero() && until.Before(end.Time) {
		end = until
	}
	return Of(b, &term, end)
}
