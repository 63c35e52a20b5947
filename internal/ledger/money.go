package ledger

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// places is to how many digits after the point a month's cost is rounded: a
// millionth of the currency. It is rounded once a month and interval, from an
// exact sum of price times seconds.
const places = 6

// Books is how a fleet counts money: in which currency, by which rates, and
// where its months begin.
type Books struct {
	// Zone in which months and price windows without a timezone lie.
	Zone *time.Location
	// Currency of sums.
	Currency string
	// Rates into Currency.
	Rates []v1alpha1.Rate
}

// ErrNoRate is wrapped by errors about amounts that cannot be converted.
var ErrNoRate = errors.New("no rate of exchange")

// BooksOf are the books of a fleet: EUR and UTC where it says nothing.
func BooksOf(f *v1alpha1.FleetSpec) (Books, error) {
	b := Books{Zone: time.UTC, Currency: "EUR"}
	if f == nil {
		return b, nil
	}
	if f.Currency != "" {
		b.Currency = f.Currency
	}
	b.Rates = f.Rates
	if f.Timezone != "" {
		zone, err := time.LoadLocation(f.Timezone)
		if err != nil {
			return b, fmt.Errorf("spec.timezone: %w: write an IANA name such as Europe/Rome", err)
		}
		b.Zone = zone
	}
	return b, nil
}

func (b Books) zone() *time.Location {
	if b.Zone == nil {
		return time.UTC
	}
	return b.Zone
}

// RateOf is the rate between two currencies that holds at a time: the newest
// that is not in the future, nil when there is none.
func (b Books) RateOf(from, to string, at v1alpha1.Time) *v1alpha1.Rate {
	return v1alpha1.NewestRate(b.Rates, from, to, at)
}

// Convert is an amount of a currency ("" is the fleet's) in the fleet's.
func (b Books) Convert(amount v1alpha1.Decimal, from string, at v1alpha1.Time) (v1alpha1.Decimal, error) {
	if from == "" || from == b.Currency || amount.IsZero() {
		return amount, nil
	}
	r := b.RateOf(from, b.Currency, at)
	if r == nil {
		return v1alpha1.Zero, fmt.Errorf("convert %s to %s: %w: add it to spec.rates of fleet.yaml", from, b.Currency, ErrNoRate)
	}
	return amount.Mul(r.Rate).Round(places), nil
}

// Month is the calendar month of an instant in the fleet's timezone, as it
// stands in files ("2026-11").
func (b Books) Month(at v1alpha1.Time) string { return at.In(b.zone()).Format(monthLayout) }

// MonthBounds are the first instant of at's month and of the next one.
func (b Books) MonthBounds(at v1alpha1.Time) (start, end v1alpha1.Time) {
	t := at.In(b.zone())
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, b.zone())
	return v1alpha1.TimeOf(first), v1alpha1.TimeOf(first.AddDate(0, 1, 0))
}

// Settle is a copy of c with its cost up to now written down (status.accrued,
// accruedAt and months), so that its price or phase can change. What it
// accrued is the same before and after.
func (b Books) Settle(c *v1alpha1.Contract, now v1alpha1.Time) *v1alpha1.Contract {
	next := clone(c)
	s := &next.Status
	open := b.open(c, now)
	s.AccruedAt = From(c, now)
	if len(open) == 0 {
		return next
	}
	s.Months = addMonths(s.Months, open)
	sum := v1alpha1.Zero
	for _, m := range s.Months {
		sum = sum.Add(m.Amount)
	}
	s.Accrued = &sum
	return next
}

// open is what c costs from when its accrual was last written down until at, by
// month.
func (b Books) open(c *v1alpha1.Contract, at v1alpha1.Time) map[string]v1alpha1.MonthCost {
	if !accrues(c.Status.Phase, c.Status.Reason) {
		return nil
	}
	from := c.Status.AccruedAt
	if from.IsZero() {
		from = c.Spec.Term.Start
	}
	if from = From(c, from); !at.After(from.Time) {
		return nil
	}
	return b.cost(c.Spec.Price, from, at)
}

// From is at, or the start of c's term where that is later: nothing accrues before it.
func From(c *v1alpha1.Contract, at v1alpha1.Time) v1alpha1.Time {
	if c.Spec.Term.Start.After(at.Time) {
		return c.Spec.Term.Start
	}
	return at
}

func addMonths(a, o map[string]v1alpha1.MonthCost) map[string]v1alpha1.MonthCost {
	out := maps.Clone(a)
	if out == nil {
		out = make(map[string]v1alpha1.MonthCost, len(o))
	}
	for month, m := range o {
		out[month] = v1alpha1.MonthCost{Amount: out[month].Amount.Add(m.Amount), List: out[month].List.Add(m.List)}
	}
	return out
}

// CostByMonth is what c has cost until at, by calendar month, in its own
// currency.
func (b Books) CostByMonth(c *v1alpha1.Contract, at v1alpha1.Time) map[string]v1alpha1.MonthCost {
	return addMonths(c.Status.Months, b.open(c, at))
}

// Accrued is what c has cost until at, in its own currency: per second from
// Reserved to Releasing, except while it is Degraded by its provider.
func (b Books) Accrued(c *v1alpha1.Contract, at v1alpha1.Time) v1alpha1.Decimal {
	sum := v1alpha1.Zero
	for _, m := range b.CostByMonth(c, at) {
		sum = sum.Add(m.Amount)
	}
	return sum
}

// MonthSpend is what a tenant's contracts have cost until at in at's calendar
// month, those that have left the tree too, in the fleet's currency.
func (b Books) MonthSpend(l *Ledger, tenant string, at v1alpha1.Time) (v1alpha1.Decimal, error) {
	month := b.Month(at)
	sums := map[string]v1alpha1.Decimal{}
	if s := l.Spend(tenant, month); s != nil {
		for i := range s.Entries {
			e := &s.Entries[i]
			sums[e.Currency] = sums[e.Currency].Add(e.Amount)
		}
	}
	start, _ := b.MonthBounds(at)
	for c := range l.tenantContracts(tenant) {
		if _, later := c.Status.Months[month]; !later && Ended(c.Status.Phase) && c.Status.Since.Before(start.Time) {
			continue // what was cancelled may be charged for months after it ended
		}
		cur := c.Spec.Price.Currency
		sums[cur] = sums[cur].Add(b.CostByMonth(c, at)[month].Amount)
	}
	return b.sum(sums, at)
}

// IntentSpent is what an intent's contracts have cost until at, those that
// have left the tree too, in the fleet's currency.
func (b Books) IntentSpent(l *Ledger, tenant, intent string, at v1alpha1.Time) (v1alpha1.Decimal, error) {
	sums := map[string]v1alpha1.Decimal{}
	if s := l.State(tenant, intent); s != nil && s.Status.Spent != nil {
		sums[s.Status.Currency] = *s.Status.Spent
	}
	for _, c := range l.ByIntent(tenant, intent) {
		cur := c.Spec.Price.Currency
		sums[cur] = sums[cur].Add(b.Accrued(c, at))
	}
	return b.sum(sums, at)
}

func (b Books) sum(byCurrency map[string]v1alpha1.Decimal, at v1alpha1.Time) (v1alpha1.Decimal, error) {
	total := v1alpha1.Zero
	for _, currency := range sortedKeys(byCurrency) {
		d, err := b.Convert(byCurrency[currency], currency, at)
		if err != nil {
			return v1alpha1.Zero, err
		}
		total = total.Add(d)
	}
	return total, nil
}

// HoldMonthly is what a charged contract will still cost in now's calendar
// month if it runs on: it is held of a monthly budget. In its own currency.
func (b Books) HoldMonthly(c *v1alpha1.Contract, now v1alpha1.Time) v1alpha1.Decimal {
	if !c.Status.Phase.Charged() {
		return v1alpha1.Zero
	}
	_, end := b.MonthBounds(now)
	return b.HoldUntil(c.Spec.Price, From(c, now), c.Spec.Term.End, end)
}

// HoldUntil is what a price comes to from now until the earlier of the term's
// end (zero: open-ended) and a limit.
func (b Books) HoldUntil(p v1alpha1.ContractPrice, now, termEnd, limit v1alpha1.Time) v1alpha1.Decimal {
	end := limit
	if !termEnd.IsZero() && termEnd.Before(end.Time) {
		end = termEnd
	}
	sum := v1alpha1.Zero
	for _, m := range b.cost(p, now, end) {
		sum = sum.Add(m.Amount)
	}
	return sum
}
