package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A tenant's budget counts as FORMATS' section 4 says: accrued is what the
// calendar month has cost, per second; held is what the contracts that stand
// will cost until its end. A placement must leave both together within
// budget.monthly, and the prices of all at their dearest within budget.hourly.
// What happens at a limit:
//
//	stop (default)  nothing is placed or enlarged beyond it; what stands runs on
//	warn            everything goes on; plan, status and metrics say so
//	end             as stop, and contracts are released: all once the month's
//	                money is spent, of an hour that is too dear the lowest
//	                priority first, then the youngest
//
// The forecast adds to accrued and held what intents with windows will cost when
// those open again before the month ends, at the price of their last contract.

// BudgetLine is a tenant's budget as of a plan, after its decisions, in the
// plan's currency.
type BudgetLine struct {
	Tenant string
	// Hourly is the price of all charged contracts at their dearest, of MaxHourly.
	Hourly v1alpha1.Decimal
	// Accrued this month, Held until its end, and Forecast of both with what is
	// yet to come, of MaxMonthly. Zero where there is no monthly budget.
	Accrued, Held, Forecast v1alpha1.Decimal
	// MaxHourly and MaxMonthly, nil for none.
	MaxHourly, MaxMonthly *v1alpha1.Decimal
	// Month such as 2026-11, in the fleet's timezone, and when it ends.
	Month string
	Ends  v1alpha1.Time
	// AtLimit is warn, stop or end.
	AtLimit string
	// Warning says which limit is or will be exceeded, "" when none is.
	Warning string
}

// budgets are the tenants' budgets after the round.
func (r *round) budgetLines() []BudgetLine {
	var out []BudgetLine
	_, ends := r.books.MonthBounds(r.now)
	for _, name := range r.accounts.Names() {
		spec := &r.w.Tenants[name].Spec
		if spec.Budget == nil {
			continue
		}
		b := r.accounts.Of(name).Budget()
		l := BudgetLine{Tenant: name, Hourly: b.Hourly.Decimal(), Month: r.books.Month(r.now), Ends: ends, AtLimit: b.AtLimit}
		limit := func(m quantity.Micro) *v1alpha1.Decimal {
			if m >= quantity.Unlimited {
				return nil
			}
			d := m.Decimal()
			return &d
		}
		l.MaxHourly, l.MaxMonthly = limit(b.MaxHourly), limit(b.MaxMonthly)
		forecast := quantity.Micro(0)
		if l.MaxMonthly != nil {
			forecast = b.Month + r.windowsAhead(name, ends)
			l.Accrued, l.Held, l.Forecast = b.Spent.Decimal(), (b.Month - b.Spent).Decimal(), forecast.Decimal()
		}
		l.Warning = b.Warning(forecast, r.books.Currency)
		out = append(out, l)
	}
	return out
}

// windowsAhead is what a tenant's intents with windows will cost when those
// open again before the month ends.
func (r *round) windowsAhead(tenant string, ends v1alpha1.Time) quantity.Micro {
	var sum quantity.Micro
	for _, j := range r.jobs {
		if j.tenantName != tenant || j.in == nil || len(j.in.Spec.Schedule.Windows) == 0 || j.in.Spec.Suspend {
			continue
		}
		switch j.phase {
		case v1alpha1.IntentPlaced, v1alpha1.IntentQueued:
		default:
			continue
		}
		limit := ends
		if !j.started.IsZero() {
			limit = lifecycle.Earlier(limit, r.lifeEnd(j, j.started).End)
		}
		for _, c := range r.lastContracts(j) {
			sum += r.openingsCost(j, c, limit)
		}
	}
	return sum
}

// lastContracts are the newest contract of each of an intent's replicas.
func (r *round) lastContracts(j *job) []*v1alpha1.Contract {
	newest := map[int32]*v1alpha1.Contract{}
	var order []int32
	for _, c := range append(append([]*v1alpha1.Contract(nil), j.all...), j.live...) {
		i := c.Spec.Intent
		if i.Replica >= j.replicas() && !j.follows() {
			continue
		}
		if newest[i.Replica] == nil {
			order = append(order, i.Replica)
		}
		if old := newest[i.Replica]; old == nil || old.Spec.Intent.Ordinal <= i.Ordinal {
			newest[i.Replica] = c
		}
	}
	out := make([]*v1alpha1.Contract, 0, len(order))
	for _, n := range order {
		out = append(out, newest[n])
	}
	return out
}

// openingsCost is what a contract's price comes to in the windows that open
// from now on until a limit; one that is open is held already.
func (r *round) openingsCost(j *job, c *v1alpha1.Contract, limit v1alpha1.Time) quantity.Micro {
	var sum quantity.Micro
	const most = 31 * 24 // openings of a month
	at := r.now
	for range most {
		open, until, next := lifecycle.OpenAt(r.books, j.in.Spec.Schedule.Windows, at)
		switch {
		case open && until.IsZero():
			return sum // all week: it is held
		case open && at != r.now:
			sum += r.inFleet(r.books.HoldUntil(c.Spec.Price, at, until, limit), c.Spec.Price.Currency)
			at = until
		case open:
			at = until
		default:
			at = next
		}
		if at.IsZero() || !at.Before(limit.Time) {
			return sum
		}
	}
	return sum
}
