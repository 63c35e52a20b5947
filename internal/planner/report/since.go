package report

import "github.com/fleetbroker/fleetbroker/internal/planner"

// Since is what a plan brings that the plan at the base would not: decisions
// that are the same are left out, and costs are compared with the base's.
func Since(base, head *planner.Plan) *planner.Plan {
	out := *head
	out.HourlyBefore = base.HourlyAfter
	out.Intents = nil
	before := map[string]*planner.Decision{}
	for i := range base.Intents {
		d := base.Intents[i]
		before[d.Tenant+"/"+d.Name] = d
	}
	changed := map[string]bool{}
	for _, d := range head.Intents {
		old := before[d.Tenant+"/"+d.Name]
		if old != nil && sameDecision(old, d) {
			continue
		}
		if old != nil {
			now := *d
			now.HourlyBefore = old.HourlyAfter
			d = &now
		}
		changed[d.Tenant+"/"+d.Name] = true
		out.Intents = append(out.Intents, d)
	}
	out.Contracts = nil
	for _, c := range head.Contracts {
		of := c.After
		if of == nil {
			of = c.Before
		}
		if changed[of.Metadata.Namespace+"/"+of.Spec.Intent.Name] {
			out.Contracts = append(out.Contracts, c)
		}
	}
	out.States = nil
	for _, s := range head.States {
		of := s.After
		if of == nil {
			of = s.Before
		}
		if changed[of.Metadata.Namespace+"/"+of.Metadata.Name] {
			out.States = append(out.States, s)
		}
	}
	out.Spends = nil
	return &out
}

// sameDecision compares what people see of two decisions.
func sameDecision(a, b *planner.Decision) bool {
	if a.Action != b.Action || a.Code != b.Code || a.HourlyAfter.Cmp(b.HourlyAfter) != 0 || len(a.Contracts) != len(b.Contracts) {
		return false
	}
	for i := range a.Contracts {
		x, y := &a.Contracts[i], &b.Contracts[i]
		if x.Provider != y.Provider || x.Flavor != y.Flavor || x.Action != y.Action || x.Consumer != y.Consumer || !x.Resources.Equal(y.Resources) {
			return false
		}
	}
	return true
}
