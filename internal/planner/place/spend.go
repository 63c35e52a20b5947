package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Budget sets the money and the number of replicas for the classes of the next
// placements. What the intent's other contracts cost is spent; those in except are
// about to be replaced.
//
// Both stay with the job (Purse, Wanted) while it waits: its place in the order of turns,
// and what is asked of it there, go by what it had in its last turn.
func (r *Placer) Budget(j *draft.Job, wanted int, except ...*v1alpha1.Contract) {
	r.BudgetFor(j, Request{}, wanted, except...)
}

// BudgetFor is Budget for the alternatives of a request.
func (r *Placer) BudgetFor(j *draft.Job, q Request, wanted int, except ...*v1alpha1.Contract) {
	p := r.purseOf(j, j.In.Spec.Budget, j.Live, except)
	r.EditJob(j)
	// Classes are kept while the replicas and the money they are made for are the same.
	if classes := q.classes(j); *classes == nil || wanted != j.Wanted || p != j.Purse {
		*classes = make([]*match.Class, len(q.alternatives(j)))
	}
	j.Wanted, j.Purse = wanted, p
}

// purseOf is what a job may spend under a budget, next to contracts that it has.
func (r *Placer) purseOf(j *draft.Job, b *v1alpha1.IntentBudget, live, except []*v1alpha1.Contract) match.SpendLimits {
	p := match.NoSpendLimits()
	if b := j.Tenant.Spec.Budget; b != nil && (b.Hourly != nil || b.Monthly != nil) {
		p.Limited = true
	}
	if b == nil {
		return p
	}
	p.Limited = p.Limited || b.MaxHourly != nil || b.MaxHourlySpot != nil || b.MaxHourlyPerGPU != nil || b.MaxTotal != nil
	var hourly, ahead quantity.Micro
	for _, c := range live {
		if slices.Contains(except, c) {
			continue
		}
		hourly += r.Peak(c) + r.transferOf(c)
		if !c.Spec.Term.End.IsZero() {
			ahead += r.InFleet(r.Books.HoldUntil(c.Spec.Price, r.Now, c.Spec.Term.End, c.Spec.Term.End), c.Spec.Price.Currency)
			ahead += r.transferOf(c).ForSeconds(int64(c.Spec.Term.End.Sub(r.Now.Time).Seconds()))
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
		p.Total = r.InFleet(*b.MaxTotal, b.Currency) - ahead
		if spent, err := r.Books.IntentSpent(r.W.Ledger, j.TenantName, j.Name, r.Now); err == nil {
			p.Total -= quantity.Micro(spent.Micro())
		}
	}
	return p
}
