package planner

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/explain"
)

// Stubborn decides a world in which each try goes by a mark that nothing leaves, so that no
// two agree, as with a mistake in what a denial follows from. It returns the plan, how often it was decided, and
// what was disputed, each time.
func Stubborn(w draft.World, tenant, name string) (p *draft.Plan, rounds int, disputed [][]string, lines []draft.OfferLine) {
	r := newRound(&w)
	r.on(errand{
		step: func(s Step) {
			if s == StepCheck {
				rounds++
			}
		},
		probe:    &explain.Probe{Tenant: tenant, Name: name},
		disputed: func(providers []string) { disputed = append(disputed, providers) },
	})
	r.decide()
	r = agree(r, func(r *round, marks map[string]draft.RefusalMark) *round {
		next := fromNothing(r, marks)
		next.Marks = maps.Clone(next.Marks)
		if next.Marks == nil {
			next.Marks = map[string]draft.RefusalMark{}
		}
		next.Marks["nowhere"] = draft.RefusalMark{}
		return next
	})
	return r.Plan, rounds, disputed, r.Probe.Lines
}
