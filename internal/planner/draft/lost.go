package draft

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// MoveAfter is how long a lost replica of a job waits for room in its gang's domain before
// all of the gang moves, 0 for never, and the field that says so.
func MoveAfter(r *Draft, j *Job) (wait time.Duration, field string) {
	if u := j.In.Spec.Update; u != nil && u.MoveAfter.Duration > 0 {
		return u.MoveAfter.Duration, "update.moveAfter"
	}
	return r.Fleet.Defaults.MoveAfter.Duration, "Fleet.defaults.moveAfter"
}

// LostSince is when the first of the replicas that a job waits for was lost: one that its
// provider does not serve, or that had a contract and has none. Zero where none is.
func LostSince(r *Draft, j *Job) (since v1alpha1.Time) {
	earlier := func(at v1alpha1.Time) {
		if since.IsZero() || at.Before(since.Time) {
			since = at
		}
	}
	for i := range j.Tasks {
		switch t := &j.Tasks[i]; {
		case t.Kind == TaskFailover && t.Old.Status.Phase == v1alpha1.PhaseDegraded:
			earlier(t.Old.Status.Since)
		case t.Kind == TaskFailover:
			if o := r.OfferOf(t.Old); o != nil {
				earlier(cmp.Or(o.Since, r.Now))
			}
		case t.Kind == TaskFresh && j.Ordinals[fmt.Sprintf("%d.%d", t.Replica, t.Part)] > 0:
			earlier(r.WaitingSince(j))
		}
	}
	return since
}

// Follow adds the tasks by which all that a job has goes elsewhere.
func (j *Job) Follow() {
	for _, c := range j.Live {
		if !slices.ContainsFunc(j.Tasks, func(t Task) bool { return t.Old == c }) {
			in := &c.Spec.Intent
			j.AddTask(Task{Kind: TaskFollow, Replica: in.Replica, Part: in.Part, Units: in.Units, Of: in.Of, Old: c})
		}
	}
}

// WaitsNow reports whether a job waits for capacity that it would take at once: not one that
// only wants to know, and none that books for a term which has not begun.
func WaitsNow(r *Draft, j *Job) bool {
	if len(j.Tasks) == 0 || j.Finding() {
		return false
	}
	return !r.By(RulesAgain) || j.In == nil || len(j.Live) > 0 || !j.In.Spec.Schedule.Book || !j.In.Spec.Schedule.NotBefore.After(r.Now.Time)
}
