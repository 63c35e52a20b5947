package invariant

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Violations are the intents whose new or enlarged contracts break an
// invariant of a plan, and how.
func Violations(w *draft.World, p *draft.Plan, flavorsOf func(provider string) []*v1alpha1.Flavor) map[[2]string]string {
	a := audit{w: w, after: afterwards(w, p), market: market{of: flavorsOf, read: map[string]bool{}, flavors: map[inventory.Key]*v1alpha1.Flavor{}, pools: map[inventory.Key][]*v1alpha1.Flavor{}}, left: map[*v1alpha1.Flavor]v1alpha1.Resources{}}
	bad := map[[2]string]string{}
	for i := range p.Contracts {
		before, c := p.Contracts[i].Before, p.Contracts[i].After
		if c == nil || !takes(c) || !grows(before, c) && !extends(before, c) {
			continue
		}
		if why := a.broken(before, c); why != "" {
			bad[[2]string{c.Metadata.Namespace, c.Spec.Intent.Name}] = why
		}
	}
	return bad
}

// audit is a plan that is asked.
type audit struct {
	w      *draft.World
	after  *aftermath
	market market
	// left is what a flavor has left after the plan.
	left map[*v1alpha1.Flavor]v1alpha1.Resources
}

// broken is how a contract that takes more, or for longer, breaks an invariant, "" for none:
// the last of what there is to say.
func (a *audit) broken(before, c *v1alpha1.Contract) (why string) {
	say := func(text string) {
		if text != "" {
			why = text
		}
	}
	if before == nil && a.w.Ledger.Contract(c.Metadata.Name) != nil {
		say("the name " + c.Metadata.Name + " is taken")
	}
	f, pool := a.market.flavor(c.Spec.Provider, c.Spec.Flavor)
	if f == nil {
		return "there is no flavor " + c.Spec.Provider + "/" + c.Spec.Flavor
	}
	if !begins(before, c) { // that takes what it had booked
		say(ahead(a.after, f, pool, c, a.w.Now))
	}
	if c.Status.Phase == v1alpha1.PhaseBooked || !grows(before, c) {
		return why // nothing more of it is taken yet
	}
	if card, over := a.after.unitsOf(f).Overfull(c); over {
		say(fmt.Sprintf("card %s of %s would be oversold", card, f.Ref()))
	}
	say(a.after.overNode(f, pool, c))
	say(a.oversold(f, pool))
	if !begins(before, c) { // its quota was given when it was booked
		say(overQuota(a.w.Tenants[c.Metadata.Namespace], a.after, c))
	}
	return why
}

// oversold is what of a flavor, or of its pool, is sold that it does not have, "" for
// nothing.
func (a *audit) oversold(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor) (why string) {
	left, known := a.left[f]
	if !known {
		var members []ledger.Member
		for _, m := range pool {
			members = append(members, a.after.memberOf(m))
		}
		left = ledger.Sellable(ledger.Figures(a.after.memberOf(f), members, ""))
		a.left[f] = left
	}
	for _, name := range left.Names() {
		if have := left[name]; have.Less(v1alpha1.Amount{}) {
			why = fmt.Sprintf("%s would be oversold: %s of %s too much", f.Ref(), v1alpha1.AmountOf(-have.Int64()).Canonical(name), name)
		}
	}
	return why
}

// market are the flavors of providers that were asked for, by name.
type market struct {
	of      func(provider string) []*v1alpha1.Flavor
	read    map[string]bool
	flavors map[inventory.Key]*v1alpha1.Flavor
	pools   map[inventory.Key][]*v1alpha1.Flavor
}

// flavor is one of a provider's by name, nil for none, with all those of its pool.
func (m *market) flavor(provider, name string) (f *v1alpha1.Flavor, pool []*v1alpha1.Flavor) {
	if !m.read[provider] {
		m.read[provider] = true
		for _, f := range m.of(provider) {
			m.flavors[inventory.Key{Provider: provider, Name: f.Metadata.Name}] = f
			if f.Spec.Pool != "" {
				k := inventory.Key{Provider: provider, Name: f.Spec.Pool}
				m.pools[k] = append(m.pools[k], f)
			}
		}
	}
	if f = m.flavors[inventory.Key{Provider: provider, Name: name}]; f != nil {
		pool = m.pools[inventory.Key{Provider: provider, Name: f.Spec.Pool}]
	}
	return f, pool
}

// takes reports whether a contract takes capacity, now or at the instants of its term.
func takes(c *v1alpha1.Contract) bool {
	return c.Status.Phase.Charged() || c.Status.Phase == v1alpha1.PhaseBooked
}

// begins reports whether a contract is a booking whose term begins.
func begins(before, after *v1alpha1.Contract) bool {
	return before != nil && before.Status.Phase == v1alpha1.PhaseBooked && after.Status.Phase != v1alpha1.PhaseBooked
}

// extends reports whether a contract ends later than before.
func extends(before, after *v1alpha1.Contract) bool {
	was, is := before.Spec.Term.End, after.Spec.Term.End
	return !was.IsZero() && (is.IsZero() || is.After(was.Time))
}

// grows reports whether a contract is new, begins or takes more of anything.
func grows(before, after *v1alpha1.Contract) bool {
	if before == nil || begins(before, after) {
		return true
	}
	for name, n := range after.Spec.Resources {
		if before.Spec.Resources[name].Less(n) {
			return true
		}
	}
	return false
}

// overQuota is the quota that a tenant exceeds with a contract that grew.
func overQuota(t *v1alpha1.Tenant, after *aftermath, c *v1alpha1.Contract) string {
	if t == nil || t.Spec.Quota == nil {
		return ""
	}
	q, sum := t.Spec.Quota, after.totals(t.Metadata.Name)
	more := q.MaxBorrow
	switch {
	case q.Contracts != nil && int64(sum.Contracts) > *q.Contracts:
		return fmt.Sprintf("quota.contracts: %d of %d", sum.Contracts, *q.Contracts)
	case q.GPU != nil && c.Spec.GPUs != nil && sum.MilliCards().Int64() > (*q.GPU+more[v1alpha1.GPU].Int64())*1000:
		return fmt.Sprintf("quota.gpu: %s of %d", account.CardsText(sum.MilliCards().Int64()), *q.GPU)
	case q.CPU != nil && q.CPU.Amount(v1alpha1.CPU).Add(more[v1alpha1.CPU]).Less(sum.CPU):
		return "quota.cpu: " + sum.CPU.Canonical(v1alpha1.CPU) + " of " + string(*q.CPU)
	case q.Memory != nil && q.Memory.Amount(v1alpha1.Memory).Add(more[v1alpha1.Memory]).Less(sum.Memory):
		return "quota.memory: " + sum.Memory.Canonical(v1alpha1.Memory) + " of " + string(*q.Memory)
	}
	return ""
}
