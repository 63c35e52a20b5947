package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A tenant's budget counts as FORMATS' section 4 states: accrued is what the
// calendar month has cost, per second; held is what the contracts that exist
// will cost until its end. A placement must leave both together within
// budget.monthly, and the highest prices of all within budget.hourly.
// What happens at a limit:
//
//	stop (default)  nothing is placed or enlarged beyond it; what exists runs on
//	warn            everything goes on; plan, status and metrics show it
//	end             as stop, and contracts are released: all once the month's
//	                money is spent, of an hour that is over budget the lowest
//	                priority first, then the youngest
//
// The forecast adds to accrued and held what intents with windows will cost when
// those open again before the month ends, at the price of their last contract.

// budgetLines are the tenants' budgets after the round.
func (r *round) budgetLines() []draft.BudgetLine {
	var out []draft.BudgetLine
	_, ends := r.Books.MonthBounds(r.Now)
	f := &forecast{r, ends}
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
		ahead := quantity.Micro(0)
		if l.MaxMonthly != nil {
			ahead = b.Month.Plus(f.windowsAhead(name)).Plus(draft.OnAxis(&r.Draft).BookedCost(name, r.Now, ends))
			l.Accrued, l.Held, l.Forecast = b.Spent.Decimal(), (b.Month - b.Spent).Decimal(), ahead.Decimal()
		}
		l.Warning = b.Warning(ahead, r.Books.Currency)
		out = append(out, l)
	}
	return out
}

// cutBudgets marks the contracts that budgets with atLimit end: all of a month
// that is spent, and of an hour that is over budget the lowest priority first,
// then the youngest.
func (r *round) cutBudgets() {
	for name, t := range r.W.Tenants {
		b := t.Spec.Budget
		if b == nil || b.AtLimit != account.AtLimitEnd || len(r.Charged.Of(name)) == 0 {
			continue
		}
		has := r.Accounts.Of(name).Budget()
		over := has.Hourly - has.MaxHourly
		if has.Spent >= has.MaxMonthly {
			over = quantity.Unlimited
		} else if has.MaxMonthly < quantity.Unlimited && has.Hourly > 0 {
			seconds := quantity.Wide{}.AddProduct(int64(has.MaxMonthly-has.Spent), 3600, 1).Quo(uint64(has.Hourly))
			r.Due(v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(min(seconds, 40*24*3600) + 1))})
		}
		list := slices.Clone(r.Charged.Of(name))
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(cmp.Compare(r.Standing(a), r.Standing(b)), b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
		})
		list = slices.DeleteFunc(list, func(c *v1alpha1.Contract) bool {
			if !costsNothing(r, c) {
				return false
			}
			if r.Due(c.Spec.Term.Start); over < quantity.Unlimited {
				over -= r.Peak(c)
			}
			return true
		})
		for _, c := range list {
			if over <= 0 {
				break
			}
			r.Cut[c.Metadata.Name] = true
			over -= r.Peak(c)
		}
	}
}

// costsNothing reports whether a charged contract was booked and its term has not begun, or
// ends in this round by itself, as another that its tenant has booked may begin then.
func costsNothing(r *round, c *v1alpha1.Contract) bool {
	if c.Spec.Term.Start.After(r.Now.Time) {
		return true
	}
	in, end := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name), c.Spec.Term.End
	return !end.IsZero() && !end.After(r.Now.Time) && in != nil && in.Digest == c.Spec.Intent.Digest
}

// forecast is what intents with windows will cost until the month ends.
type forecast struct {
	*round
	ends v1alpha1.Time
}

// windowsAhead is what a tenant's intents with windows will cost when those
// open again before the month ends.
func (f *forecast) windowsAhead(tenant string) quantity.Micro {
	var sum quantity.Micro
	for _, j := range f.Jobs {
		if j.TenantName != tenant || j.In == nil || len(j.In.Spec.Schedule.Windows) == 0 || j.In.Spec.Suspend {
			continue
		}
		switch j.Phase {
		case v1alpha1.IntentPlaced, v1alpha1.IntentQueued:
		default:
			continue
		}
		limit := f.ends
		if !j.Started.IsZero() {
			limit = lifecycle.Earlier(limit, f.LifeEnd(j, j.Started).End)
		}
		for _, c := range f.lastContracts(j) {
			sum = sum.Plus(f.openingsCost(j, c, limit))
		}
	}
	return sum
}

// lastContracts are the newest contract of each of an intent's replicas.
func (f *forecast) lastContracts(j *draft.Job) []*v1alpha1.Contract {
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
func (f *forecast) openingsCost(j *draft.Job, c *v1alpha1.Contract, limit v1alpha1.Time) quantity.Micro {
	var sum quantity.Micro
	const most = 31 * 24 // openings of a month
	at := f.Now
	for range most {
		open, until, next := lifecycle.OpenAt(f.Books, j.In.Spec.Schedule.Windows, at)
		switch {
		case open && until.IsZero():
			return sum // all week: it is held
		case open && at != f.Now:
			sum = sum.Plus(f.InFleet(f.Books.HoldUntil(c.Spec.Price, at, until, limit), c.Spec.Price.Currency))
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
