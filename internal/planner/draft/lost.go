package draft

import (
	"cmp"
	"fmt"
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
		case t.Kind == TaskFresh && j.Ordinals[fmt.Sprintf("%d.0", t.Replica)] > 0:
			earlier(r.WaitingSince(j))
		}
	}
	return since
}
