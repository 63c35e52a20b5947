package planner

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/invariant"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// checkInvariants asks the finished plan, by other means than those that made
// it, whether anything that it places or enlarges is oversold, breaks a quota
// or has a taken name. What does is taken out of the plan and reported: a
// mistake here must cost a decision, not a promise.
func (r *round) checkInvariants() {
	for range 3 {
		bad := invariant.Violations(r.W, r.Plan, r.flavorsOf)
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

// halfGangs adds the gangs that had nothing, booked neither, and of which the plan places
// some replicas and not all.
func (r *round) halfGangs(bad map[[2]string]string) {
	placed := map[*model.Intent]map[int32]bool{}
	had := map[*model.Intent]bool{}
	for i := range r.Plan.Contracts {
		c := r.Plan.Contracts[i].After
		began := r.By(draft.RulesAgain) && r.Plan.Contracts[i].Before != nil && r.Plan.Contracts[i].Before.Status.Phase == v1alpha1.PhaseBooked
		if c == nil || !c.Status.Phase.Charged() && !began {
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

// goesNext reports whether a contract stays until the one of its replica that the plan
// places works (update.maxUnavailable: 0): it is no part of the rest that must be near.
func goesNext(r *round, c *v1alpha1.Contract, placed []*v1alpha1.Contract) bool {
	return r.By(draft.RulesAgain) && slices.ContainsFunc(placed, func(n *v1alpha1.Contract) bool {
		return n.Spec.Intent.Replica == c.Spec.Intent.Replica && n.Spec.Intent.Part == c.Spec.Intent.Part
	})
}

// apartGangs adds the intents whose replicas must share a domain and of which the plan
// places some in another than the rest of them, unless they were in several before.
func apartGangs(r *round, bad map[[2]string]string) {
	placed := map[[2]string][]*v1alpha1.Contract{}
	required := func(k [2]string) (w domain.Kind, ok bool) {
		w, ok = place.WithinOf(&r.Placer, r.Find(k[0], k[1]))
		return w, ok && w.Required
	}
	ends := map[string]bool{}
	for i := range r.Plan.Contracts {
		before, c := r.Plan.Contracts[i].Before, r.Plan.Contracts[i].After
		if c != nil && before == nil && c.Status.Phase.Charged() {
			k := [2]string{c.Metadata.Namespace, c.Spec.Intent.Name}
			if _, ok := required(k); ok {
				placed[k] = append(placed[k], c)
			}
		} else if c == nil || !c.Status.Phase.Charged() {
			ends[r.Plan.Contracts[i].Last().Metadata.Name] = true
		}
	}
	for k, list := range placed {
		w, _ := required(k)
		old := map[string]bool{}
		var leaves map[*v1alpha1.Contract]bool // what goes where the rest is as soon as it can
		if r.By(draft.RulesEditsInDomain) {
			leaves = place.Leaving(&r.Placer, r.JobOf(k[0], k[1]))
		}
		for _, c := range r.W.Ledger.ByIntent(k[0], k[1]) {
			if c.Status.Phase.Charged() && !ends[c.Metadata.Name] && !goesNext(r, c, list) && !leaves[c] && !leaves[r.Latest(c)] {
				old[rules.DomainOf(&r.Draft, c, w.By, w.Label)] = true
			}
		}
		delete(old, "") // outside of all counts for none
		for _, c := range list {
			d := rules.DomainOf(&r.Draft, c, w.By, w.Label)
			if d == "" || len(old) > 0 && !old[d] {
				bad[k] = fmt.Sprintf("%s would not be in one %s with the rest of its intent (placement.within)", c.Metadata.Name, match.KindOf(w.By, w.Label))
			}
			old[d] = true
		}
	}
}
