package pacing

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

func TestClassOfAPlan(t *testing.T) {
	in := func(p v1alpha1.Phase) *v1alpha1.Contract {
		if p == "" {
			return nil
		}
		return &v1alpha1.Contract{Status: v1alpha1.ContractStatus{Phase: p}}
	}
	change := func(before, after v1alpha1.Phase, status bool) model.Change {
		return model.Change{Before: in(before), After: in(after), StatusOnly: status}
	}
	peering := change(v1alpha1.PhaseReserved, v1alpha1.PhasePeering, true)
	placed := change("", v1alpha1.PhaseReserved, false)
	drained := change(v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased, false)
	for name, c := range map[string]struct {
		changes []model.Change
		states  []model.StateChange
		class   pushbudget.Class
		status  bool
	}{
		"status":                    {changes: []model.Change{peering}, class: pushbudget.Status, status: true},
		"an intent's state":         {changes: []model.Change{peering}, states: []model.StateChange{{}}, class: pushbudget.Decision},
		"placed":                    {changes: []model.Change{peering, placed}, class: pushbudget.Decision},
		"released, still held":      {changes: []model.Change{change(v1alpha1.PhaseActive, v1alpha1.PhaseReleasing, false)}, class: pushbudget.Decision},
		"drained":                   {changes: []model.Change{placed, drained}, class: pushbudget.Urgent},
		"drained, as status":        {changes: []model.Change{change(v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased, true)}, class: pushbudget.Urgent, status: true},
		"out of the tree, not held": {changes: []model.Change{change(v1alpha1.PhaseReleased, "", false)}, class: pushbudget.Decision},
		"out of the tree, held":     {changes: []model.Change{change(v1alpha1.PhaseReleasing, "", false)}, class: pushbudget.Urgent},
	} {
		t.Run(name, func(t *testing.T) {
			class, status := Of(&planner.Plan{Contracts: c.changes, States: c.states})
			if class != c.class || status != c.status {
				t.Errorf("class %d, status %t; want %d, %t", class, status, c.class, c.status)
			}
		})
	}
}
