package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// For is a request for so many replicas of a job at once, and what may be spent on
// them: what the job's other contracts cost is spent; those in except are about to be
// replaced.
func (r *Placer) For(j *draft.Job, q Request, replicas int, except ...*v1alpha1.Contract) Request {
	q.spending = match.Spending{
		Replicas: int64(max(replicas, 1)), Money: r.moneyFor(j, j.In.Spec.Budget, j.Live, except), Seconds: j.Seconds,
	}
	return q
}

// spending is what a request spends on a job.
func (r *Placer) spending(j *draft.Job, q Request) match.Spending {
	if q.spending.Replicas > 0 {
		return q.spending
	}
	return r.For(j, q, len(j.Tasks)).spending
}

// Limited reports whether money limits what a job takes: its own budget, or its
// tenant's.
func Limited(j *draft.Job) bool { return limited(j, j.In.Spec.Budget) }

// limited is Limited under a budget of the job's.
func limited(j *draft.Job, own *v1alpha1.IntentBudget) bool {
	if b := j.Tenant.Spec.Budget; b != nil && (b.Hourly != nil || b.Monthly != nil) {
		return true
	}
	return own != nil && (own.MaxHourly != nil || own.MaxHourlySpot != nil || own.MaxHourlyPerGPU != nil || own.MaxTotal != nil)
}

// moneyFor is what a job may spend under a budget, next to contracts that it has.
func (r *Placer) moneyFor(j *draft.Job, b *v1alpha1.IntentBudget, live, except []*v1alpha1.Contract) match.SpendLimits {
	p := match.NoSpendLimits()
	p.Limited = limited(j, b)
	if b == nil {
		return p
	}
	var hourly, ahead quantity.Micro
	for _, c := range live {
		if slices.Contains(except, c) {
			continue
		}
		hourly = hourly.Plus(r.Peak(c)).Plus(r.transferOf(c))
		if b.MaxTotal != nil && !c.Spec.Term.End.IsZero() {
			ahead = ahead.Plus(r.ToEnd(c))
			ahead = ahead.Plus(r.transferOf(c).ForSeconds(int64(c.Spec.Term.End.Sub(r.Now.Time).Seconds())))
		}
	}
	if b.MaxHourly != nil {
		p.Hourly = r.InFleet(*b.MaxHourly, b.Currency) - hourly
		p.HourlySpot = p.Hourly
	}
	if b.MaxHourlySpot != nil {
		p.HourlySpot = r.InFleet(*b.MaxHourlySpot, b.Currency) - hourly
	}
	if b.MaxHourlyPerGPU != nil {
		p.PerGPU = r.InFleet(*b.MaxHourlyPerGPU, b.Currency)
	}
	if b.MaxTotal != nil {
		p.Total = r.InFleet(*b.MaxTotal, b.Currency).Minus(ahead).Minus(draft.OnAxis(&r.Draft).SpentOn(j))
	}
	return p
}

// NoteAskedForAll notes that a job is asked for all that it waits for. Rules below
// RulesOrderedByAll went by what its last turn had asked for: where its own budget limits
// it, fewer replicas may fit more offers, and what it replaces leaves it more money.
func (r *Placer) NoteAskedForAll(j *draft.Job) {
	if j.In.Spec.Budget != nil && r.Turns > 0 && (len(j.Tasks) > 1 || len(j.Live) > 0) {
		r.NoteReordered()
	}
}

// transferOf is what a charged contract's data is estimated to cost an hour.
func (r *Placer) transferOf(c *v1alpha1.Contract) quantity.Micro {
	if c.Decision.Transfer == nil || !c.Status.Phase.Charged() {
		return 0
	}
	return r.InFleet(c.Decision.Transfer.Hourly, c.Decision.Transfer.Currency)
}

// endOf is when a contract that begins now ends: with the intent's term or
// window, and else when its part of the intent's total is spent.
func (r contractWriter) endOf(q match.Quote) v1alpha1.Time {
	j := r.job
	if !j.End.IsZero() || q.Most() <= 0 {
		return j.End
	}
	spending := r.spending(j, r.how)
	if spending.Money.Total >= quantity.Unlimited {
		return j.End
	}
	part := spending.Money.Total / quantity.Micro(spending.Replicas)
	seconds := quantity.Wide{}.AddProduct(int64(part), 3600, 1).Quo(uint64(q.Most()))
	const century = 100 * 365 * 24 * 3600
	return v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(min(seconds, century)))}
}
