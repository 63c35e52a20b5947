package draft

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// BoundsOf are the bounds that fleet and tenant set to a job's duration.
func (f *Facts) BoundsOf(j *Job) lifecycle.Bounds {
	b := lifecycle.Bounds{Duration: f.Fleet.Defaults.Duration.Duration}
	if q := j.Tenant.Spec.Quota; q != nil {
		b.Most = q.MaxDuration
	}
	return b
}

// LifeEnd is when an intent's term ends for good, windows aside, if it began at
// started.
func (f *Facts) LifeEnd(j *Job, started v1alpha1.Time) lifecycle.Term {
	return lifecycle.TermOf(&j.In.Spec.Schedule, f.BoundsOf(j), started)
}

// Stamp is an instant for people.
func Stamp(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }

// SecondsOf is n seconds.
func SecondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

// MsOf is n milliseconds.
func MsOf(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
