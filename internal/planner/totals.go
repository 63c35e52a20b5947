package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// totals sums up the plan.
func (r *round) totals() {
	after := quantity.TotalOf(r.Charged.Hourly())
	for i := range r.Plan.Contracts {
		for sign, c := range map[quantity.Micro]*v1alpha1.Contract{-1: r.Plan.Contracts[i].Before, 1: r.Plan.Contracts[i].After} {
			if c != nil && c.Status.Phase.Charged() {
				after = after.Plus(sign * r.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency))
			}
		}
	}
	r.Plan.HourlyBefore, r.Plan.HourlyAfter = r.Charged.Hourly().Decimal(), after.Micro().Decimal()
	last := ""
	for _, o := range r.Inventory.Unheard() {
		if o.State == model.Silent {
			r.Due(o.GraceEnds)
		}
		if (o.State == model.Silent || o.State == model.Lost || o.State == model.Elsewhere) && o.Provider != last {
			last = o.Provider
			r.Plan.Silent = append(r.Plan.Silent, draft.SilentProvider{Name: o.Provider, Since: o.Since, Lost: o.State == model.Lost})
		}
	}
	r.monthDue()
	if !r.W.Brief {
		r.Plan.Budgets = r.budgetLines()
	}
	r.Plan.Notes = r.notes()
}

// monthDue notes the next month's start when a monthly budget holds somebody
// back.
func (r *round) monthDue() {
	for _, j := range r.Waiting {
		if j.Tenant.LimitedMonthly() {
			_, end := r.Books.MonthBounds(r.Now)
			r.Due(end)
			return
		}
	}
}
