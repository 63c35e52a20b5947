package reconciler

import (
	"cmp"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/pacing"
)

// takeTurn looks whether this replica decides, for one round. One that begins to
// asks the remote first: another one may have written.
func (r *Reconciler) takeTurn() {
	leads := r.opts.Leads == nil || r.opts.Leads()
	if r.turns.Over() || leads != r.leads { // it changes
		r.leads = leads
		r.ask.Store(true)
		r.opts.Pushes.Spent() // by the one before
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

// holdStatus is when a plan may be committed that only carries status, or for which
// the budget of pushes has none left; zero when it may now, or goes with requests.
func (r *Reconciler) holdStatus(in *inputs, plan *planner.Plan) time.Time {
	if !plan.Changes() || len(r.desk.files) > 0 {
		return time.Time{}
	}
	class, status := pacing.Of(plan)
	at := r.opts.Pushes.At(class)
	if !at.IsZero() { // rounds count whole seconds
		at = at.Add(time.Second - 1).Truncate(time.Second)
	}
	if due := r.lastStatus.Add(in.fleet.Policy.WriteBack.StatusInterval.Duration); status && plan.Now.Before(due) && due.After(at) {
		return due
	}
	return at
}

// mayPush reports whether a push of a class may go now; if not, a round follows when it
// may.
func (r *Reconciler) mayPush(class pushbudget.Class) bool {
	at := r.opts.Pushes.At(class)
	r.paced = earliest(r.paced, at)
	return at.IsZero()
}

// late refuses a request that the budget of pushes holds back for longer than its client
// waits; one that stands on the ledger already needs no push.
func (r *Reconciler) late(w *waiter) error {
	wait := r.opts.Pushes.Wait()
	deadline, bounded := w.ctx.Deadline()
	if wait == 0 || !bounded || time.Until(deadline) > wait {
		return nil
	}
	if s := r.standing.Load(); s != nil && w.ask.Key != "" && s.requests().byName[wire.ReservationID(w.ask.Cluster, w.ask.Key)] != nil {
		return nil
	}
	return unavailable(wait, "pushes to the fleet repository wait for %s; ask again with the same %s", wait.Round(time.Second), wire.HeaderIdempotencyKey)
}
