package planner

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// checkInvariants asks the finished plan, by other means than those that made
// it, whether anything that it places or enlarges is oversold, breaks a quota
// or has a taken name. What does is taken out of the plan and reported: a
// mistake here must cost a decision, not a promise.
func (r *round) checkInvariants() {
	for range 3 {
		bad := violations(r.W, r.Plan, r.flavorsOf)
		r.halfGangs(bad)
		apartGangs(r, bad)
		if len(bad) == 0 {
			return
		}
		for intent, why := range bad {
			for _, pool := range r.claimedFrom(intent) {
				r.withdraw(pool, why)
			}
			r.withdraw(intent, why)
		}
	}
}

// claimedFrom are the warm pools from which an intent claims in this plan: half
// of a claim must not stay.
func (r *round) claimedFrom(intent [2]string) [][2]string {
	var out [][2]string
	for i := range r.Plan.Contracts {
		c := r.Plan.Contracts[i].After
		if c != nil && r.Plan.Contracts[i].Before == nil && c.Decision.Claimed != "" && c.Metadata.Namespace == intent[0] && c.Spec.Intent.Name == intent[1] {
			out = append(out, [2]string{v1alpha1.FleetTenant, c.Decision.Claimed})
		}
	}
	return out
}

// withdraw takes an intent's changes out of the plan.
func (r *round) withdraw(intent [2]string, why string) {
	of := func(c *v1alpha1.Contract) bool {
		return c != nil && c.Metadata.Namespace == intent[0] && c.Spec.Intent.Name == intent[1]
	}
	r.Plan.Contracts = slices.DeleteFunc(r.Plan.Contracts, func(c model.Change) bool { return of(c.Before) || of(c.After) })
	r.Plan.States = slices.DeleteFunc(r.Plan.States, func(s model.StateChange) bool {
		return s.After != nil && s.After.Metadata.Namespace == intent[0] && s.After.Metadata.Name == intent[1]
	})
	for i := range r.Plan.Intents {
		if was := r.Plan.Intents[i]; was.Tenant == intent[0] && was.Name == intent[1] {
			d := *was
			r.Plan.Intents[i] = &d
			d.Action, d.Code, d.Reason, d.Contracts, d.HourlyAfter = draft.Refuse, lifecycle.CodeInvariant, "not done, because it would break an invariant: "+why, nil, d.HourlyBefore
			d.Counted = draft.Span{}
		}
	}
}

// flavorsOf are a provider's flavors.
func (r *round) flavorsOf(provider string) []*v1alpha1.Flavor {
	var out []*v1alpha1.Flavor
	for _, o := range r.Inventory.By(provider) {
		out = append(out, o.Flavor)
	}
	return out
}

// violations are the intents whose new or enlarged contracts break an
// invariant of a plan, and how.
func violations(w *draft.World, p *draft.Plan, flavorsOf func(provider string) []*v1alpha1.Flavor) map[[2]string]string {
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
		if c == nil || !c.Status.Phase.Charged() || !grows(before, c) {
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
		if card, over := after.unitsOf(f).Overfull(c); over {
			bad[intent] = fmt.Sprintf("card %d of %s would be oversold", card, f.Ref())
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
		if why := overQuota(w.Tenants[c.Metadata.Namespace], after, c); why != "" {
			bad[intent] = why
		}
	}
	return bad
}

// halfGangs adds the gangs that had nothing and of which the plan places some
// replicas and not all.
func (r *round) halfGangs(bad map[[2]string]string) {
	placed := map[*model.Intent]map[int32]bool{}
	had := map[*model.Intent]bool{}
	for i := range r.Plan.Contracts {
		c := r.Plan.Contracts[i].After
		if c == nil || !c.Status.Phase.Charged() {
			continue
		}
		in := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
		if in == nil || in.Spec.Gang != nil && !*in.Spec.Gang || in.Spec.Replicas.Min < 2 {
			continue
		}
		if r.Plan.Contracts[i].Before != nil {
			had[in] = true
			continue
		}
		if placed[in] == nil {
			placed[in] = map[int32]bool{}
		}
		placed[in][c.Spec.Intent.Replica] = true
	}
	for in, replicas := range placed {
		tenant, name := in.Metadata.Namespace, in.Metadata.Name
		held := had[in] || slices.ContainsFunc(r.W.Ledger.ByIntent(tenant, name), func(c *v1alpha1.Contract) bool { return c.Status.Phase.Charged() })
		if n := len(replicas); !held && n < int(in.Spec.Replicas.Min) {
			bad[[2]string{tenant, name}] = fmt.Sprintf("only %d of a gang of %d would be placed", n, in.Spec.Replicas.Min)
		}
	}
}

// apartGangs adds the intents whose replicas must share a domain and of which the plan
// places some in another than the rest of them, unless they were in several before.
func apartGangs(r *round, bad map[[2]string]string) {
	placed := map[[2]string][]*v1alpha1.Contract{}
	ends := map[string]bool{}
	for i := range r.Plan.Contracts {
		before, c := r.Plan.Contracts[i].Before, r.Plan.Contracts[i].After
		if c != nil && before == nil && c.Status.Phase.Charged() {
			k := [2]string{c.Metadata.Namespace, c.Spec.Intent.Name}
			placed[k] = append(placed[k], c)
		} else if c == nil || !c.Status.Phase.Charged() {
			ends[r.Plan.Contracts[i].Last().Metadata.Name] = true
		}
	}
	for k, list := range placed {
		w, ok := place.WithinOf(&r.Placer, r.Find(k[0], k[1]))
		if !ok || !w.Required {
			continue
		}
		old := map[string]bool{}
		for _, c := range r.W.Ledger.ByIntent(k[0], k[1]) {
			if c.Status.Phase.Charged() && !ends[c.Metadata.Name] {
				old[r.DomainOf(c, w.By, w.Label)] = true
			}
		}
		delete(old, "") // outside of all counts for none
		for _, c := range list {
			d := r.DomainOf(c, w.By, w.Label)
			if d == "" || len(old) > 0 && !old[d] {
				bad[k] = fmt.Sprintf("%s would not be in one %s with the rest of its intent (placement.within)", c.Metadata.Name, match.KindOf(w.By, w.Label))
			}
			old[d] = true
		}
	}
}

// grows reports whether a contract is new or takes more of anything.
func grows(before, after *v1alpha1.Contract) bool {
	if before == nil {
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

// aftermath is what a ledger holds after a plan, without making the ledger: the
// reconciler makes it once, when the plan has landed.
type aftermath struct {
	before *ledger.Ledger
	plan   *draft.Plan
	// changed contracts by name, and those that hold afterwards by flavor.
	changed map[string]bool
	held    map[inventory.Key][]*v1alpha1.Contract
	// sums of tenants, members and units of flavors, made on first use: a plan may
	// have thousands of contracts on one flavor.
	sums    map[string]ledger.Totals
	members map[*v1alpha1.Flavor]ledger.Member
	units   map[*v1alpha1.Flavor]ledger.CardUnits
}

func afterwards(l *ledger.Ledger, p *draft.Plan) *aftermath {
	a := &aftermath{before: l, plan: p, changed: make(map[string]bool, len(p.Contracts)), held: map[inventory.Key][]*v1alpha1.Contract{}, sums: map[string]ledger.Totals{},
		members: map[*v1alpha1.Flavor]ledger.Member{}, units: map[*v1alpha1.Flavor]ledger.CardUnits{}}
	for i := range p.Contracts {
		a.changed[p.Contracts[i].Last().Metadata.Name] = true
		if c := p.Contracts[i].After; c != nil && c.Status.Phase.Held() {
			k := inventory.Key{Provider: c.Spec.Provider, Name: c.Spec.Flavor}
			a.held[k] = append(a.held[k], c)
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
