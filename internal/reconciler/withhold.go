package reconciler

import (
	"cmp"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// takeTurn looks whether this replica decides, for one round. One that begins to
// asks the remote first: another one may have written.
func (r *Reconciler) takeTurn() {
	leads := r.opts.Leads == nil || r.opts.Leads()
	if r.turns.Over() || leads != r.leads { // it changes
		r.leads = leads
		r.ask.Store(true)
	}
}

// shadow reports whether this daemon only reports.
func (r *Reconciler) shadow(in *inputs) bool {
	mode := in.fleet.Policy.WriteBack.Mode
	return r.standby || r.opts.Shadow || mode == writeBackNone || r.withheld(in.fleet.Policy) != ""
}

// withheld says why nothing may be written though the fleet wants it, "" when
// nothing stands in the way. Pushing what it wants reviewed would be worse than
// not acting.
func (r *Reconciler) withheld(f *v1alpha1.FleetSpec) string {
	if f.WriteBack.Mode == writeBackReview && r.opts.PullRequests == nil {
		return "fleet.yaml: writeBack.mode is pull-request, and this daemon knows no forge: it plans and reports, and writes nothing; start it with --forge and --forge-token-file"
	}
	return cmp.Or(r.unlisted, r.blocked, r.turns.StandsBy())
}

// Modes of writeBack.
const (
	writeBackReview = "pull-request"
	writeBackNone   = "none" // a shadow, for everybody
)

// holdStatus is when a plan that only carries status may be committed; zero
// when it may now.
func (r *Reconciler) holdStatus(in *inputs, plan *planner.Plan) time.Time {
	if !plan.Changes() || len(plan.States) > 0 || len(plan.Spends) > 0 {
		return time.Time{}
	}
	for _, c := range plan.Contracts {
		if !c.StatusOnly {
			return time.Time{}
		}
	}
	due := r.lastStatus.Add(in.fleet.Policy.WriteBack.StatusInterval.Duration)
	if plan.Now.Before(due) {
		return due
	}
	return time.Time{}
}
