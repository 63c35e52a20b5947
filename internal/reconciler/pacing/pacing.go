// Package pacing says how urgent the push of a plan is, for the budget of pushes
// (package pushbudget).
//
// Caller: reconciler. It has no state.
package pacing

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Of is the class of a plan that changes something: Urgent when it ends a contract that
// was held, which gives its capacity back, and Status when it only carries status, as
// status says.
func Of(p *planner.Plan) (class pushbudget.Class, status bool) {
	status = len(p.States) == 0 && len(p.Spends) == 0 && !slices.ContainsFunc(p.Contracts, func(c model.Change) bool { return !c.StatusOnly })
	switch {
	case slices.ContainsFunc(p.Contracts, ends):
		return pushbudget.Urgent, status
	case status:
		return pushbudget.Status, true
	}
	return pushbudget.Decision, false
}

func ends(c model.Change) bool {
	return c.Before != nil && c.Before.Status.Phase.Held() && (c.After == nil || !c.After.Status.Phase.Held())
}
