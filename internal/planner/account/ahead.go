package account

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// What is booked ahead counts against quota and hourly budget at the instants of its term
// alone, and against the monthly budgets of the months that it lies in.

// Ahead is what a tenant has at an instant of the future beside what it has now.
type Ahead struct {
	// Ended are those of its contracts that will have ended by then, Booked what will have
	// begun.
	Ended, Booked []*v1alpha1.Contract
}

// Narrow takes from limits what an instant of the future leaves less than now.
func (a *Accounts) Narrow(l *Limits, then Ahead) {
	sum := a.SumAhead(l.Tenant, then)
	a.NarrowBy(l, &sum)
}

// Sum is what counts of a tenant at an instant of the future.
type Sum struct {
	held   ledger.Totals
	hourly quantity.Total
}

// SumAhead sums up what a tenant has at an instant.
func (a *Accounts) SumAhead(t *Tenant, then Ahead) Sum {
	s := Sum{t.taken().Clone(), t.hourly.Plus(t.kept.hourly.Micro())}
	for _, c := range then.Ended {
		s.held.RemoveHeld(c)
		s.hourly = s.hourly.Minus(a.Money.Most(c))
	}
	for _, c := range then.Booked {
		a.Book(&s, c)
	}
	return s
}

// Book adds a booking to a sum.
func (a *Accounts) Book(s *Sum, c *v1alpha1.Contract) {
	s.held.AddHeld(c)
	s.hourly = s.hourly.Plus(a.Money.Most(c))
}

// Unbook takes a booking out of a sum that it is in.
func (a *Accounts) Unbook(s *Sum, c *v1alpha1.Contract) {
	s.held.RemoveHeld(c)
	s.hourly = s.hourly.Minus(a.Money.Most(c))
}

// NarrowBy is Narrow by a sum.
func (a *Accounts) NarrowBy(l *Limits, s *Sum) {
	t, hourly := l.Tenant, s.hourly.Micro()
	left := Limits{Tenant: t, GPU: noLimit, CPU: noLimit, Memory: noLimit}
	a.quotaLeft(&left, s.held)
	l.ahead = true
	l.GPU, l.CPU, l.Memory, l.Contracts = min(l.GPU, left.GPU), min(l.CPU, left.CPU), min(l.Memory, left.Memory), min(l.Contracts, left.Contracts)
	for i := range l.byModel {
		l.byModel[i].left = min(l.byModel[i].left, left.byModel[i].left)
	}
	if t.atLimit != AtLimitWarn && t.maxHourly < quantity.Unlimited {
		l.Hourly = min(l.Hourly, t.maxHourly.Minus(hourly))
	}
}

// KeepForBooked takes from limits what a tenant's bookings will cost in the month of an
// instant.
func (a *Accounts) KeepForBooked(l *Limits, booked []*v1alpha1.Contract, now v1alpha1.Time) {
	if l.Monthly >= quantity.Unlimited {
		return
	}
	start, end := a.Money.Books.MonthBounds(now)
	for _, c := range booked {
		l.Monthly = l.Monthly.Minus(a.Money.Within(c, start, end))
	}
}

// LimitsAhead is what a booking of a tenant may take for [from, to): all of what the quota
// is at no instant of it, to be narrowed, and what the months that it lies in leave beside
// what is charged and booked already.
func (a *Accounts) LimitsAhead(t *Tenant, from, to v1alpha1.Time, charged, booked []*v1alpha1.Contract) Limits {
	l := Limits{Tenant: t, GPU: noLimit, CPU: noLimit, Memory: noLimit, Hourly: quantity.Unlimited, Monthly: quantity.Unlimited}
	a.quotaLeft(&l, ledger.Totals{})
	if t.atLimit == AtLimitWarn || !t.LimitedMonthly() {
		return l
	}
	for at := from; at.Before(to.Time); {
		start, end := a.Money.Books.MonthBounds(at)
		left := t.maxMonthly.Minus(t.kept.month.Micro())
		if start.After(a.Money.Now.Time) {
			left = left.Minus(a.chargedFor(t, start))
			for _, c := range charged {
				left = left.Minus(a.Money.Within(c, start, end))
			}
		} else {
			left = left.Minus(t.month.Micro())
		}
		for _, c := range booked {
			left = left.Minus(a.Money.Within(c, start, end))
		}
		until := end
		if to.Before(end.Time) {
			until = to
		}
		// The month that leaves the least an hour binds.
		seconds := int64(until.Sub(at.Time) / time.Second)
		if l.Seconds == 0 || perHour(left, seconds) < perHour(l.Monthly, l.Seconds) {
			l.Monthly, l.Seconds = left, seconds
		}
		at = until
	}
	return l
}

// chargedFor is what a tenant has been charged already for the month that begins then: for
// bookings that it cancelled too late.
func (a *Accounts) chargedFor(t *Tenant, start v1alpha1.Time) quantity.Micro {
	month := a.Money.Books.Month(start)
	sum, known := t.charged[month]
	if !known {
		if spent, err := a.Money.Books.MonthSpend(a.Ledger, t.Name, start); err == nil {
			sum = quantity.Micro(spent.Micro())
		}
		t.charged[month] = sum
	}
	return sum + t.later[month]
}

// perHour is an amount for so many seconds by the hour.
func perHour(m quantity.Micro, seconds int64) float64 { return float64(m) / float64(max(seconds, 1)) }

// Within is what a contract costs of [start, end) in its term, whatever its phase.
func (m *Money) Within(c *v1alpha1.Contract, start, end v1alpha1.Time) quantity.Micro {
	from := ledger.From(c, start)
	if !from.Before(end.Time) {
		return 0
	}
	return m.In(m.Books.HoldUntil(c.Spec.Price, from, c.Spec.Term.End, end), c.Spec.Price.Currency)
}
