package account

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Money counts in a fleet's currency as of an instant.
type Money struct {
	Books ledger.Books
	Now   v1alpha1.Time
}

// In is an amount of a currency in the fleet's; without a rate it is taken as it
// is, as the ledger does: to lose it would be worse than to misname it.
// (Reading a fleet demands a rate for every currency it names.)
func (m *Money) In(d v1alpha1.Decimal, currency string) quantity.Micro {
	if v, err := m.Books.Convert(d, currency, m.Now); err == nil {
		d = v
	}
	return quantity.Micro(d.Micro())
}

// hourly is what a contract costs an hour outside of its price windows, in any
// phase.
func (m *Money) hourly(c *v1alpha1.Contract) quantity.Micro {
	return m.In(c.Spec.Price.Hourly, c.Spec.Price.Currency)
}

// Peak is the most that a charged contract costs an hour, 0 of others.
func (m *Money) Peak(c *v1alpha1.Contract) quantity.Micro {
	if c == nil || !c.Status.Phase.Charged() {
		return 0
	}
	return m.Most(c)
}

// exactly is how far ahead the windows of a price are followed from opening to opening.
const exactly = 400 * 24 * time.Hour

// ToEnd is what a contract will cost from now to the end of its term. Whose price has windows
// counts at the most it comes to beyond exactly, unless all are to be followed: there are
// some ten thousand openings in each ten years, and this is asked in each round.
func (m *Money) ToEnd(c *v1alpha1.Contract, all bool) quantity.Micro {
	end, rest := c.Spec.Term.End, quantity.Micro(0)
	if far := v1alpha1.TimeOf(m.Now.Add(exactly)); !all && len(c.Spec.Price.Windows) > 0 && end.After(far.Time) {
		rest, end = m.Most(c).ForSeconds(int64(end.Sub(far.Time)/time.Second)), far
	}
	return m.In(m.Books.HoldUntil(c.Spec.Price, m.Now, end, end), c.Spec.Price.Currency).Plus(rest)
}

// hold is what a charged contract will still cost this month, 0 of others.
func (m *Money) hold(c *v1alpha1.Contract) quantity.Micro {
	if c == nil || !c.Status.Phase.Charged() {
		return 0
	}
	return m.In(m.Books.HoldMonthly(c, m.Now), c.Spec.Price.Currency)
}

// Most is the most that a contract costs an hour, whatever its phase.
func (m *Money) Most(c *v1alpha1.Contract) quantity.Micro {
	p := c.Spec.Price.Hourly
	for i := range c.Spec.Price.Windows {
		if c.Spec.Price.Windows[i].Hourly.Cmp(p) > 0 {
			p = c.Spec.Price.Windows[i].Hourly
		}
	}
	return m.In(p, c.Spec.Price.Currency)
}
