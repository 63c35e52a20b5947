package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// totals sums up the plan.
func (r *round) totals() {
	var delta quantity.Micro
	for i := range r.plan.Contracts {
		for sign, c := range map[quantity.Micro]*v1alpha1.Contract{-1: r.plan.Contracts[i].Before, 1: r.plan.Contracts[i].After} {
			if c != nil && c.Status.Phase.Charged() {
				delta += sign * r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
			}
		}
	}
	r.plan.HourlyBefore, r.plan.HourlyAfter = r.charged.Hourly().Decimal(), (r.charged.Hourly() + delta).Decimal()
	last := ""
	for _, o := range r.inventory.Unheard() {
		if o.State == model.Silent {
			r.due(o.GraceEnds)
		}
		if (o.State == model.Silent || o.State == model.Lost || o.State == model.Elsewhere) && o.Provider != last {
			last = o.Provider
			r.plan.Silent = append(r.plan.Silent, SilentProvider{Name: o.Provider, Since: o.Since, Lost: o.State == model.Lost})
		}
	}
	r.monthDue()
	if !r.w.Brief {
		r.plan.Budgets = r.budgetLines()
	}
	r.plan.Notes = r.notes()
}

// monthDue notes the next month's start when a monthly budget holds somebody
// back.
func (r *round) monthDue() {
	for _, j := range r.waiting {
		if j.tenant.LimitedMonthly() {
			_, end := r.books.MonthBounds(r.now)
			r.due(end)
			return
		}
	}
}
