package planner

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/explain"
)

// Explain returns everything about one intent: what was understood, and every
// offer once with its score or the requirement it fails, as they were when
// the intent's turn came in the very decision that Decide makes. An intent
// that holds contracts is explained as if it were to be placed now.
func Explain(w draft.World, tenant, name string) (*draft.Explanation, error) {
	r := newRound(&w)
	in := r.Find(tenant, name)
	if in == nil {
		return nil, fmt.Errorf("explain %s/%s: there is no such intent: see `fleetbroker get intents`", tenant, name)
	}
	r.on(errand{probe: &explain.Probe{Tenant: tenant, Name: name}})
	r.decide()
	r = agree(r, fromNothing)
	out := &draft.Explanation{Intent: *in, Offers: r.Probe.Lines}
	for i := range r.Plan.Intents {
		if d := r.Plan.Intents[i]; d.Tenant == tenant && d.Name == name {
			out.Decision = *d
		}
	}
	for _, c := range w.Ledger.ByIntent(tenant, name) {
		if c.Status.Phase.Held() && c.Status.Reason != "" {
			out.Troubled = append(out.Troubled, c)
		}
	}
	j := r.JobOf(tenant, name)
	out.Wants = r.Wants(j)
	for i := range out.Offers {
		l := &out.Offers[i]
		l.Chosen = slices.ContainsFunc(out.Decision.Contracts, func(c draft.ContractLine) bool {
			return c.Action != draft.Release && c.Provider+"/"+c.Flavor == l.Flavor.Ref()
		})
	}
	out.Failed = out.Decision.Rejected
	// Of several replicas one may fail what another does not: the lines are of one, and so
	// are the counts.
	out.Decision.Considered, out.Decision.Fitting, out.Decision.Rejected = len(out.Offers), 0, map[string]int{}
	for i := range out.Offers {
		if l := &out.Offers[i]; l.Fits {
			out.Decision.Fitting++
		} else {
			out.Decision.Rejected[l.Requirement]++
		}
	}
	return out, nil
}
