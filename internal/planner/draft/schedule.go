package draft

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// BoundsOf are what fleet and tenant say of a job's duration.
func (r *Draft) BoundsOf(j *Job) lifecycle.Bounds {
	b := lifecycle.Bounds{Duration: r.Fleet.Defaults.Duration.Duration}
	if q := j.Tenant.Spec.Quota; q != nil {
		b.Most = q.MaxDuration
	}
	return b
}

// LifeEnd is when an intent's term ends for good, windows aside, if it began at
// started.
func (r *Draft) LifeEnd(j *Job, started v1alpha1.Time) lifecycle.Term {
	return lifecycle.TermOf(&j.In.Spec.Schedule, r.BoundsOf(j), started)
}

// Stamp is an instant for people.
func Stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
