package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Takes are the providers of which a plan takes more than contracts have, in order:
// those that it places on, moves to, or enlarges contracts of.
func Takes(p *planner.Plan) []string {
	out := map[string]bool{}
	for _, c := range p.Contracts {
		if c.After == nil || !c.After.Status.Phase.Held() {
			continue
		}
		if c.Before == nil || c.Before.Spec.Provider != c.After.Spec.Provider || !c.Before.Spec.Resources.Max(c.After.Spec.Resources).Equal(c.Before.Spec.Resources) {
			out[c.After.Spec.Provider] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// Outdated reports whether a provider of which a plan takes more has said something
// since that the market did not know, so that another plan is to be made. newest
// looks, and makes the market know; nil: the market knows all there is.
func Outdated(ctx context.Context, newest func(context.Context, []string) (bool, error), p *planner.Plan) (bool, error) {
	taken := Takes(p)
	if newest == nil || len(taken) == 0 {
		return false, nil
	}
	news, err := newest(ctx, taken)
	if err != nil {
		return false, fmt.Errorf("before capacity is taken: %w", err)
	}
	return news, nil
}
