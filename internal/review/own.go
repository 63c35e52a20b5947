package review

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// shows reports whether what a tenant pays is shown: in the repository of some tenants
// what others pay, and the fleet, is not.
func (in Input) shows(tenant string) bool {
	if in.Source == "" {
		return true
	}
	e := in.Before.Fleet.Policy.Source(in.Source)
	return e != nil && slices.Contains(e.Tenants, tenant)
}

// own is what a plan brings since another one as it is shown: its sums are of the tenants
// that are shown, and of others' intents it has what becomes of them and where, without
// figures of money and, unless they give way, without reasons, which may have some.
func (in Input) own(since, before, after *planner.Plan) *planner.Plan {
	if in.Source == "" {
		return since
	}
	out := *since
	out.HourlyBefore, out.HourlyAfter = in.paid(before), in.paid(after)
	out.Intents = make([]*planner.Decision, len(since.Intents))
	for i, d := range since.Intents {
		if out.Intents[i] = d; !in.shows(d.Tenant) {
			out.Intents[i] = unpriced(d)
		}
	}
	out.Budgets = slices.DeleteFunc(slices.Clone(since.Budgets), func(l planner.BudgetLine) bool { return !in.shows(l.Tenant) })
	out.Contracts = slices.DeleteFunc(slices.Clone(since.Contracts), func(c model.Change) bool {
		of := c.After
		if of == nil {
			of = c.Before
		}
		return !in.shows(of.Metadata.Namespace)
	})
	return &out
}

// paid is what the tenants that are shown pay an hour after a plan.
func (in Input) paid(p *planner.Plan) v1alpha1.Decimal {
	var sum v1alpha1.Decimal
	for tenant, cost := range hourly(p) {
		if in.shows(tenant) {
			sum = sum.Add(cost)
		}
	}
	return sum
}

// unpriced is a decision without what it costs.
func unpriced(d *planner.Decision) *planner.Decision {
	out := &planner.Decision{Tenant: d.Tenant, Name: d.Name, Path: d.Path, Action: d.Action, Code: d.Code, Since: d.Since}
	if d.Action == planner.Preempt {
		out.Reason = d.Reason // priorities, and whose
	}
	for i := range d.Contracts {
		c := &d.Contracts[i]
		out.Contracts = append(out.Contracts, planner.ContractLine{
			Name: c.Name, Provider: c.Provider, Flavor: c.Flavor, From: c.From, Action: c.Action, Consumer: c.Consumer, Resources: c.Resources, GPUs: c.GPUs, Phase: c.Phase,
		})
	}
	return out
}
