package planner

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// boundsOf are what fleet and tenant say of a job's duration.
func (r *round) boundsOf(j *job) lifecycle.Bounds {
	b := lifecycle.Bounds{Duration: r.fleet.Defaults.Duration.Duration}
	if q := j.tenant.Spec.Quota; q != nil {
		b.Most = q.MaxDuration
	}
	return b
}

// lifeEnd is when an intent's term ends for good, windows aside, if it began at
// started.
func (r *round) lifeEnd(j *job, started v1alpha1.Time) lifecycle.Term {
	return lifecycle.TermOf(&j.in.Spec.Schedule, r.boundsOf(j), started)
}

func stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
