package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
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

// budgets are the tenants' budgets after the round.
func (r *round) budgetLines() []draft.BudgetLine {
	var out []draft.BudgetLine
	_, ends := r.Books.MonthBounds(r.Now)
	for _, name := range r.Accounts.Names() {
		spec := &r.W.Tenants[name].Spec
		if spec.Budget == nil {
			continue
		}
		b := r.Accounts.Of(name).Budget()
		l := draft.BudgetLine{Tenant: name, Hourly: b.Hourly.Decimal(), Month: r.Books.Month(r.Now), Ends: ends, AtLimit: b.AtLimit}
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
		l.Warning = b.Warning(forecast, r.Books.Currency)
		out = append(out, l)
	}
	return out
}

// windowsAhead is what a tenant's intents with windows will cost when those
// open again before the month ends.
func (r *round) windowsAhead(tenant string, ends v1alpha1.Time) quantity.Micro {
	var sum quantity.Micro
	for _, j := range r.Jobs {
		if j.TenantName != tenant || j.In == nil || len(j.In.Spec.Schedule.Windows) == 0 || j.In.Spec.Suspend {
			continue
		}
		switch j.Phase {
		case v1alpha1.IntentPlaced, v1alpha1.IntentQueued:
		default:
			continue
		}
		limit := ends
		if !j.Started.IsZero() {
			limit = lifecycle.Earlier(limit, r.LifeEnd(j, j.Started).End)
		}
		for _, c := range r.lastContracts(j) {
			sum += r.openingsCost(j, c, limit)
		}
	}
	return sum
}

// lastContracts are the newest contract of each of an intent's replicas.
func (r *round) lastContracts(j *draft.Job) []*v1alpha1.Contract {
	newest := map[int32]*v1alpha1.Contract{}
	var order []int32
	for _, c := range append(append([]*v1alpha1.Contract(nil), j.All...), j.Live...) {
		i := c.Spec.Intent
		if i.Replica >= j.Replicas() && !j.Follows() {
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
func (r *round) openingsCost(j *draft.Job, c *v1alpha1.Contract, limit v1alpha1.Time) quantity.Micro {
	var sum quantity.Micro
	const most = 31 * 24 // openings of a month
	at := r.Now
	for range most {
		open, until, next := lifecycle.OpenAt(r.Books, j.In.Spec.Schedule.Windows, at)
		switch {
		case open && until.IsZero():
			return sum // all week: it is held
		case open && at != r.Now:
			sum += r.InFleet(r.Books.HoldUntil(c.Spec.Price, at, until, limit), c.Spec.Price.Currency)
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
