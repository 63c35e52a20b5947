package account

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Source is what accounts are opened from. None of it changes while they are in
// use.
type Source struct {
	Tenants map[string]*v1alpha1.Tenant
	Ledger  *ledger.Ledger
	// Standing is that of Ledger.
	Standing *Standing
	// Limits are the fleet's, filled.
	Limits v1alpha1.Limits
	// Money is as of the round's instant.
	Money Money
	// Leaving are the contracts of a tenant that are being released in Ledger and
	// count against its quota until they are seen gone.
	Leaving func(tenant string) []*v1alpha1.Contract
}

// Accounts are those of a round's tenants.
type Accounts struct {
	Source
	open  map[string]*Tenant
	names []string
}

// New are accounts of which none is opened yet.
func New(s Source) *Accounts { return &Accounts{Source: s, open: map[string]*Tenant{}} }

// Of is a tenant's account, opened on first use; one that the fleet does not know
// has no limits of its own.
func (a *Accounts) Of(name string) *Tenant {
	if t := a.open[name]; t != nil {
		return t
	}
	t := &Tenant{Name: name, Spec: &v1alpha1.TenantSpec{}, kinds: map[string]map[int]bool{}, later: map[string]quantity.Micro{}, charged: map[string]quantity.Micro{}, maxHourly: quantity.Unlimited, maxMonthly: quantity.Unlimited}
	if known := a.Tenants[name]; known != nil {
		t.Known, t.Spec = true, &known.Spec
	}
	a.open[name] = t
	t.totals = a.Ledger.Totals(name)
	for _, c := range a.Leaving(name) {
		t.leaving.AddHeld(c)
	}
	a.openBudget(t)
	return t
}

func (a *Accounts) openBudget(t *Tenant) {
	b := t.Spec.Budget
	if b == nil {
		return
	}
	t.atLimit = b.AtLimit
	if b.Hourly != nil {
		t.maxHourly = a.Money.In(*b.Hourly, b.Currency)
	}
	if b.Monthly != nil {
		t.maxMonthly = a.Money.In(*b.Monthly, b.Currency)
		if spent, err := a.Money.Books.MonthSpend(a.Ledger, t.Name, a.Money.Now); err == nil {
			t.spent = quantity.TotalOf(quantity.Micro(spent.Micro()))
		}
		t.month = t.spent
	}
	t.hourly = a.Standing.peak(t.Name)
	if t.maxMonthly < quantity.Unlimited {
		for _, c := range a.Standing.Of(t.Name) {
			t.month = t.month.Plus(a.Money.hold(c))
		}
	}
}

// Names are the tenants that the fleet knows, in order.
func (a *Accounts) Names() []string {
	if a.names == nil {
		a.names = slices.Sorted(maps.Keys(a.Tenants))
	}
	return a.names
}

// at is money as of another instant.
func (a *Accounts) at(now v1alpha1.Time) *Money { return &Money{a.Money.Books, now} }

// Entry is a version of a contract as it is on its tenant's account: wholly
// while it is charged, on the quota alone while it leaves, and else not at all.
type Entry struct {
	// Contract is nil where there is none.
	Contract *v1alpha1.Contract
	// Leaving: it is being released and counts until it is seen gone.
	Leaving bool
}

// Change is what was booked, with its amounts as of then.
type Change struct{ off, on line }

// line is what an entry comes to; without a tenant it is nothing.
type line struct {
	tenant   *Tenant
	contract *v1alpha1.Contract // nil: money alone
	leaving  bool
	kept     bool // for a claim; not held
	hourly, month,
	spent quantity.Micro
	later map[string]quantity.Micro // by month ("2026-12")
}

// Charge books that one version of a contract takes the place of another, as of
// an instant.
func (a *Accounts) Charge(before, after Entry, now v1alpha1.Time) Change {
	return Change{a.lineOf(before, now), a.lineOf(after, now)}.Again()
}

// Expire books that a contract ends as it was known to: what it was to cost this
// month until then it has cost.
func (a *Accounts) Expire(e Entry, now v1alpha1.Time) Change {
	ch := Change{off: a.lineOf(e, now)}
	ch.off.month = 0
	return ch.Again()
}

// TurnMonth begins another month of an account: nothing is spent, and so much is
// held until its end.
func (t *Tenant) TurnMonth(held quantity.Micro) Change {
	return Change{on: line{tenant: t, month: held.Minus(t.month.Micro()), spent: -t.spent.Micro()}}.Again()
}

// Spend books what the round has charged of months, by month as in files, for a booking that
// was cancelled too late: it is not in the ledger yet.
func (a *Accounts) Spend(tenant string, months map[string]v1alpha1.MonthCost, currency string) Change {
	t := a.Of(tenant)
	if !t.LimitedMonthly() {
		return Change{}
	}
	l := line{tenant: t, later: map[string]quantity.Micro{}}
	for month, cost := range months {
		n := a.Money.In(cost.Amount, currency)
		if month == a.Money.Books.Month(a.Money.Now) {
			l.month, l.spent = n, n
		} else {
			l.later[month] = n
		}
	}
	return Change{on: l}.Again()
}

// Undo takes a change back. Those after it have been taken back before.
func (c Change) Undo() { c.Reverse() }

// Keep books that what a rehearsal charged stays free for whom it was rehearsed: it
// counts against the limits of the tenant's others and is neither held nor spent.
func (c Change) Keep() Change {
	c.off.kept, c.on.kept = true, true
	return c.Again()
}

// Reverse books the opposite of a change.
func (c Change) Reverse() Change {
	c.off, c.on = c.on, c.off
	return c.Again()
}

// Again books a change another time.
func (c Change) Again() Change {
	c.off.book(-1)
	c.on.book(1)
	return c
}

func (a *Accounts) lineOf(e Entry, now v1alpha1.Time) line {
	c := e.Contract
	charged := c != nil && c.Status.Phase.Charged()
	if !charged && !e.Leaving {
		return line{}
	}
	t := a.Of(c.Metadata.Namespace)
	l := line{tenant: t, contract: c, leaving: !charged}
	if !charged {
		return l
	}
	if t.maxHourly < quantity.Unlimited || t.LimitedMonthly() {
		l.hourly = a.at(now).Peak(c)
	}
	if t.LimitedMonthly() {
		l.month = a.at(now).hold(c)
	}
	return l
}

// book puts a line on its account, or takes it off (−1).
func (l *line) book(sign quantity.Micro) {
	t := l.tenant
	if t == nil {
		return
	}
	t.changes++
	if l.kept {
		t.kept.book(l, sign)
		return
	}
	t.hourly = t.hourly.Plus(sign * l.hourly)
	t.month = t.month.Plus(sign * l.month)
	t.spent = t.spent.Plus(sign * l.spent)
	for month, n := range l.later {
		if t.later[month] += sign * n; t.later[month] == 0 {
			delete(t.later, month)
		}
	}
	totals := &t.totals
	if l.leaving {
		totals = &t.leaving
	}
	switch {
	case l.contract == nil:
	case sign < 0:
		totals.RemoveHeld(l.contract)
	default:
		totals.AddHeld(l.contract)
	}
}

// kept is what claims keep of an account.
type kept struct {
	totals ledger.Totals
	// hourly and month are money, as on the account.
	hourly, month quantity.Total
}

func (k *kept) book(l *line, sign quantity.Micro) {
	k.hourly = k.hourly.Plus(sign * l.hourly)
	k.month = k.month.Plus(sign * l.month)
	switch {
	case l.contract == nil:
	case sign < 0:
		k.totals.RemoveHeld(l.contract)
	default:
		k.totals.AddHeld(l.contract)
	}
}
