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
	after := afterwards(w.Ledger, p)
	offers, pools := map[inventory.Key]*v1alpha1.Flavor{}, map[inventory.Key][]*v1alpha1.Flavor{}
	read := map[string]bool{}
	learn := func(provider string) {
		if read[provider] {
			return
		}
		read[provider] = true
		for _, f := range flavorsOf(provider) {
			offers[inventory.Key{Provider: provider, Name: f.Metadata.Name}] = f
			if f.Spec.Pool != "" {
				k := inventory.Key{Provider: provider, Name: f.Spec.Pool}
				pools[k] = append(pools[k], f)
			}
		}
	}
	bad := map[[2]string]string{}
	free := map[*v1alpha1.Flavor]v1alpha1.Resources{}
	for i := range p.Contracts {
		before, c := p.Contracts[i].Before, p.Contracts[i].After
		if c == nil || !takes(c) || !grows(before, c) && !extends(before, c) {
			continue
		}
		intent := [2]string{c.Metadata.Namespace, c.Spec.Intent.Name}
		if before == nil && w.Ledger.Contract(c.Metadata.Name) != nil {
			bad[intent] = "the name " + c.Metadata.Name + " is taken"
		}
		learn(c.Spec.Provider)
		f := offers[inventory.Key{Provider: c.Spec.Provider, Name: c.Spec.Flavor}]
		if f == nil {
			bad[intent] = "there is no flavor " + c.Spec.Provider + "/" + c.Spec.Flavor
			continue
		}
		if !begins(before, c) { // that takes what it had booked
			if why := ahead(after, f, pools[inventory.Key{Provider: c.Spec.Provider, Name: f.Spec.Pool}], c, w.Now); why != "" {
				bad[intent] = why
			}
		}
		if c.Status.Phase == v1alpha1.PhaseBooked || !grows(before, c) {
			continue // nothing more of it is taken yet
		}
		if card, over := after.unitsOf(f).Overfull(c); over {
			bad[intent] = fmt.Sprintf("card %d of %s would be oversold", card, f.Ref())
		}
		if why := after.overNode(f, pools[inventory.Key{Provider: c.Spec.Provider, Name: f.Spec.Pool}], c); why != "" {
			bad[intent] = why
		}
		left, known := free[f]
		if !known {
			var members []ledger.Member
			for _, m := range pools[inventory.Key{Provider: c.Spec.Provider, Name: f.Spec.Pool}] {
				members = append(members, after.memberOf(m))
			}
			left = ledger.Sellable(ledger.Figures(after.memberOf(f), members, ""))
			free[f] = left
		}
		for _, name := range left.Names() {
			if have := left[name]; have.Less(v1alpha1.Amount{}) {
				bad[intent] = fmt.Sprintf("%s would be oversold: %s of %s too much", f.Ref(), v1alpha1.AmountOf(-have.Int64()).Canonical(name), name)
			}
		}
		if begins(before, c) {
			continue // its quota was given when it was booked
		}
		if why := overQuota(w.Tenants[c.Metadata.Namespace], after, c); why != "" {
			bad[intent] = why
		}
	}
	return bad
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
