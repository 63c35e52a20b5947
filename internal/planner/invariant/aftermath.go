package invariant

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// aftermath is what a ledger holds after a plan, without making the ledger: the
// reconciler makes it once, when the plan has landed.
type aftermath struct {
	before *ledger.Ledger
	plan   *draft.Plan
	// changed contracts by name, and those that hold afterwards by flavor.
	changed map[string]bool
	held    map[inventory.Key][]*v1alpha1.Contract
	booked  map[inventory.Key][]*v1alpha1.Contract
	// sums of tenants, members and units of flavors, made on first use: a plan may
	// have thousands of contracts on one flavor.
	sums    map[string]ledger.Totals
	members map[*v1alpha1.Flavor]ledger.Member
	units   map[*v1alpha1.Flavor]ledger.CardUnits
	nodes   map[*v1alpha1.Flavor]*ledger.NodesHeld
	// calendar is what is booked (ahead.go); later: at later instants contracts count as they
	// were sold.
	calendar calendar
	later    bool
}

// term is [from, to) on a flavor and its pool.
type term struct {
	f        *v1alpha1.Flavor
	from, to v1alpha1.Time
}

// calendar is what was worked out of what is booked after the plan: of a thousand bookings
// of one flavor each asks for the same.
type calendar struct {
	booked map[*v1alpha1.Flavor][]*v1alpha1.Contract
	starts map[term][]v1alpha1.Time
	left   map[term]v1alpha1.Resources
	lists  map[*v1alpha1.Flavor][]*v1alpha1.Contract
}

func afterwards(w *draft.World, p *draft.Plan) *aftermath {
	a := &aftermath{before: w.Ledger, plan: p, later: w.Rules == 0 || w.Rules >= draft.RulesAgain, changed: make(map[string]bool, len(p.Contracts)), held: map[inventory.Key][]*v1alpha1.Contract{}, booked: map[inventory.Key][]*v1alpha1.Contract{}, sums: map[string]ledger.Totals{},
		members: map[*v1alpha1.Flavor]ledger.Member{}, units: map[*v1alpha1.Flavor]ledger.CardUnits{}, nodes: map[*v1alpha1.Flavor]*ledger.NodesHeld{},
		calendar: calendar{map[*v1alpha1.Flavor][]*v1alpha1.Contract{}, map[term][]v1alpha1.Time{}, map[term]v1alpha1.Resources{}, map[*v1alpha1.Flavor][]*v1alpha1.Contract{}}}
	for i := range p.Contracts {
		a.changed[p.Contracts[i].Last().Metadata.Name] = true
		c := p.Contracts[i].After
		if c == nil {
			continue
		}
		k := inventory.Key{Provider: c.Spec.Provider, Name: c.Spec.Flavor}
		switch {
		case c.Status.Phase.Held():
			a.held[k] = append(a.held[k], c)
		case c.Status.Phase == v1alpha1.PhaseBooked:
			a.booked[k] = append(a.booked[k], c)
		}
	}
	return a
}

// unitsOf are the units on the cards of a flavor after the plan.
func (a *aftermath) unitsOf(f *v1alpha1.Flavor) ledger.CardUnits {
	u, known := a.units[f]
	if !known {
		u = ledger.UnitsOf(a.memberOf(f))
		a.units[f] = u
	}
	return u
}

// memberOf is a flavor with its contracts after the plan.
func (a *aftermath) memberOf(f *v1alpha1.Flavor) ledger.Member {
	m, known := a.members[f]
	if known {
		return m
	}
	m = a.before.MemberOf(f)
	m.Held = slices.DeleteFunc(m.Held, func(c *v1alpha1.Contract) bool { return a.changed[c.Metadata.Name] })
	m.Held = append(m.Held, a.held[inventory.Key{Provider: f.Metadata.Namespace, Name: f.Metadata.Name}]...)
	a.members[f] = m
	return m
}

// totals are a tenant's charged contracts after the plan.
func (a *aftermath) totals(tenant string) ledger.Totals {
	sum, known := a.sums[tenant]
	if known {
		return sum
	}
	sum = a.before.Totals(tenant)
	for i := range a.plan.Contracts {
		c := &a.plan.Contracts[i]
		if c.Before != nil && c.Before.Metadata.Namespace == tenant {
			sum.Remove(c.Before)
		}
		if c.After != nil && c.After.Metadata.Namespace == tenant {
			sum.Add(c.After)
		}
	}
	a.sums[tenant] = sum
	return sum
}
