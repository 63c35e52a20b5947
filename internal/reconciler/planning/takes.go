package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Takes are the providers of which a plan takes more than contracts have, in order:
// those that it places on, moves to, or enlarges contracts of.
func Takes(p *planner.Plan) []string {
	out := map[string]bool{}
	for _, c := range p.Contracts {
		if c.After == nil || !c.After.Status.Phase.Held() && c.After.Status.Phase != v1alpha1.PhaseBooked {
			continue
		}
		begins := c.Before != nil && c.Before.Status.Phase == v1alpha1.PhaseBooked && c.After.Status.Phase.Held()
		if c.Before == nil || begins || c.Before.Spec.Provider != c.After.Spec.Provider || !c.Before.Spec.Resources.Covers(c.After.Spec.Resources) {
			out[c.After.Spec.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// Outdated reports whether a provider of which a plan takes more has less than the
// market had that the plan was made on, or is not what it was, so that another plan is to
// be made. newest
// makes the market know what providers offer at this moment; nil: the market knows
// all there is, and nothing is looked at.
func Outdated(ctx context.Context, newest func(context.Context, []string) error, p *planner.Plan, was *market.Snapshot, now func() *market.Snapshot) (bool, error) {
	taken := Takes(p)
	if newest == nil || len(taken) == 0 {
		return false, nil
	}
	if err := newest(ctx, taken); err != nil {
		return false, fmt.Errorf("before capacity is taken: %w", err)
	}
	is := now()
	for _, provider := range is.Differs(was) {
		if slices.Contains(taken, provider) && less(was.Of(provider), is.Of(provider)) {
			return true, nil
		}
	}
	return false, nil
}
