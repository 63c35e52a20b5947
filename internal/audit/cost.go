package audit

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/months"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Charge is what one contract cost at one price in one stretch of time within
// one calendar month of the fleet.
type Charge struct {
	// Contract as it was then.
	Contract *v1alpha1.Contract
	// Labels of its intent, as the inputs that were acted on had them last.
	Labels map[string]string
	// Month such as 2026-11; From and To bound the stretch.
	Month    string
	From, To v1alpha1.Time
	// Cost at the contract's price and at list price, in its currency.
	Cost v1alpha1.MonthCost
	// Dearest is what it would have cost on the most expensive offer that fitted when it
	// was decided; nil where that is not known.
	Dearest *v1alpha1.Decimal
	// Forecast: it has not happened yet.
	Forecast bool
	// Cancelled: nothing was used, a booking was cancelled too late.
	Cancelled bool
}

// Period bounds charges.
type Period struct {
	// From and Until; zero: since ever, and until Now.
	From, Until v1alpha1.Time
	// Now is until when charges have accrued.
	Now v1alpha1.Time
}

// Charges derives from the history what everything cost in a period, and, where
// the period reaches beyond now, what the contracts that are held then will. A
// stretch that lies within the period whole is what the ledger wrote down: over
// the whole history, charges add up to the ledger's figures to the last digit.
func Charges(ctx context.Context, h History, o Options, when Period, fn func(Charge)) error {
	rd := newReader(h)
	r := &recorder{reader: rd, books: newBooks(), labels: map[string]map[string]string{}}
	r.fn = func(_ *Commit, _ v1alpha1.Time, d *delta) error {
		for _, p := range d.contracts {
			r.label(p)
			for _, part := range months.Cancelled(r.state.books, p.Before, p.After, when.From, when.Until) {
				fn(Charge{Contract: p.After, Labels: r.labels[ledger.IntentDir(p.After.Metadata.Namespace, p.After.Spec.Intent.Name)], Month: part.Month, From: part.From, To: part.To, Cost: part.Cost, Cancelled: true})
			}
			if p.Before == nil || p.After == nil || p.After.Status.AccruedAt == p.Before.Status.AccruedAt {
				continue
			}
			r.stretch(p.Before, p.After.Status.AccruedAt, when, false, fn)
		}
		return nil
	}
	if err := r.record(ctx, o); err != nil {
		return err
	}
	for _, name := range sortedKeys(r.byName) {
		c := r.byName[name]
		if !c.Status.Phase.Held() {
			continue
		}
		r.stretch(c, when.Now, when, false, fn)
		if when.Now.Before(when.Until.Time) {
			end := when.Until
			if t := c.Spec.Term.End; !t.IsZero() && t.Before(end.Time) {
				end = t
			}
			settled := r.state.books.Settle(c, when.Now)
			r.stretch(settled, end, when, true, fn)
		}
	}
	return nil
}

// label remembers the labels of a contract's intent: they are still its labels
// when the intent is gone.
func (r *recorder) label(p pair) {
	if p.After == nil {
		return
	}
	if it := r.state.fleet.Intent(p.After.Metadata.Namespace, p.After.Spec.Intent.Name); it != nil {
		r.labels[ledger.IntentDir(p.After.Metadata.Namespace, p.After.Spec.Intent.Name)] = it.Metadata.Labels
	}
}

// stretch charges a contract from when its cost was last written down until
// end, as far as that lies in the period.
func (r *recorder) stretch(c *v1alpha1.Contract, end v1alpha1.Time, when Period, forecast bool, fn func(Charge)) {
	b := r.state.books
	limit := when.Now
	if forecast {
		limit = when.Until
	} else if !when.Until.IsZero() && when.Until.Before(limit.Time) {
		limit = when.Until
	}
	if end.After(limit.Time) {
		end = limit
	}
	open := *c
	open.Status.Months, open.Status.Accrued = nil, nil
	if open.Status.AccruedAt.IsZero() {
		open.Status.AccruedAt = c.Spec.Term.Start
	}
	if from := when.From; open.Status.AccruedAt.Before(from.Time) {
		open.Status.AccruedAt = from
	}
	labels := r.labels[ledger.IntentDir(c.Metadata.Namespace, c.Spec.Intent.Name)]
	mostExpensive := map[string]v1alpha1.MonthCost{}
	if d := c.Decision.Dearest; d != nil {
		there := open
		there.Spec.Price.Hourly, there.Spec.Price.List, there.Spec.Price.Windows = d.Hourly, d.Hourly, nil
		mostExpensive = b.CostByMonth(&there, end)
	}
	for _, part := range months.Of(b, &open, end) {
		charge := Charge{Contract: c, Labels: labels, Month: part.Month, From: part.From, To: part.To, Cost: part.Cost, Forecast: forecast}
		if there, ok := mostExpensive[part.Month]; ok {
			charge.Dearest = &there.Amount
		}
		fn(charge)
	}
}
