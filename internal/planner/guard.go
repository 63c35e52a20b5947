package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// guardEnds holds everything back when too many contracts would end because
// intents are gone or providers are lost: more often than not that is a bad
// merge or a broken network, and not what anybody wants.
func (r *round) guardEnds() {
	renamed := map[[2]string]bool{}
	for k := range r.renames {
		// As in adopt: an intent that the ledger knows by its own name takes
		// nothing over, and what it was called before is gone.
		if r.w.Ledger.State(k[0], k[1]) == nil {
			renamed[[2]string{k[0], r.find(k[0], k[1]).Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]}] = true
		}
	}
	ends := map[string]bool{}
	ask := func(c *v1alpha1.Contract, ending bool) {
		end := c.Spec.Term.End // what its term or a budget ends now is not counted
		if ending && c.Status.Phase.Charged() && !r.w.ForceRelease[c.Metadata.Name] && !r.cut[c.Metadata.Name] && (end.IsZero() || end.After(r.now.Time)) {
			ends[c.Metadata.Name] = true
		}
	}
	// What is frozen does not end because its intent or its provider is gone, but
	// gives spot capacity back as all do.
	for k := range r.orphans {
		for _, c := range r.heldOf(k) {
			ask(c, !renamed[k] && !r.isFrozenContract(c))
		}
	}
	for i := range r.unheard {
		o := r.offers[i]
		for _, c := range o.contracts {
			ask(c, o.State == Withdrawn && r.interrupted(c, o) || o.State == Lost && !r.w.Deaf && !r.isFrozenContract(c))
		}
	}
	limit := max(5, r.w.Ledger.Held()/5)
	if m := r.fleet.Safety.MaxEnds; m != nil {
		limit = int(*m)
	}
	if len(ends) <= limit || r.w.AllowEnds || r.fleet.Suspend {
		return
	}
	r.heldBack = true
	r.plan.HeldBackEnds = len(ends)
	r.plan.HeldBack = fmt.Sprintf("%d contracts would end because intents are gone or providers are lost; one round may end %d (fleet.yaml, spec.safety.maxEnds): allow it once with `fleetbroker reconcile --once --allow-ends %s`", len(ends), limit, cmp.Or(r.w.Inputs, "COMMIT"))
}

// cutBudgets marks the contracts that budgets with atLimit end: all of a month
// that is spent, and of an hour that is too dear the lowest priority first,
// then the youngest.
func (r *round) cutBudgets() {
	for name, t := range r.w.Tenants {
		b := t.Spec.Budget
		if b == nil || b.AtLimit != atLimitEnd || len(r.held[name]) == 0 {
			continue
		}
		account := r.tenantOf(name)
		over := account.hourly - account.maxHourly
		if account.spent >= account.maxMonthly {
			over = unlimited
		} else if account.maxMonthly < unlimited && account.hourly > 0 {
			seconds := wide{}.addProduct(int64(account.maxMonthly-account.spent), 3600, 1).quo(uint64(account.hourly))
			r.due(v1alpha1.Time{Time: r.now.Add(secondsOf(min(seconds, 40*24*3600) + 1))})
		}
		list := slices.Clone(r.held[name])
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(cmp.Compare(r.standing(a), r.standing(b)), b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
		})
		for _, c := range list {
			if over <= 0 {
				break
			}
			r.cut[c.Metadata.Name] = true
			over -= r.peak(c)
		}
	}
}
