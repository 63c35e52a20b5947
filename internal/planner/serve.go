package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// fillAll does the tasks of all jobs: by priority, then the older intent
// first; those first seen at once are one batch, in which the least flexible
// go first (flexibility), then the biggest, then by name. (Measured on real
// offers and demand, that order comes within a few percent of the optimum's cost
// where the order of arrival leaves 20 to 60: Karmada and SkyPilot take the
// latter.) Where places are chosen by what they strand of cards sold in parts,
// size does not count: the biggest first would be alike one after the other, and
// fill offers to where none of what comes later fits. (Measured on the openb
// trace in batches at a load of 1: 292 of 6,212 GPUs are left, 362 with the
// biggest first.)
//
// What a job gives up may be what an earlier one waits for, and what it takes
// changes why others wait, so it goes round until a pass changes nothing: a
// plan that was applied leaves nothing to do, and the reasons are those of the
// end.
func (r *round) fillAll() {
	var waiting []*draft.Job
	for _, j := range r.Jobs {
		if (len(j.Tasks) == 0 && !j.Warm()) || j.Finding() {
			continue
		}
		r.Budget(j, len(j.Tasks))
		waiting = append(waiting, j)
	}
	r.Order(waiting)
	const times = 8 // each but the last made somebody give way, or let somebody off
	for range times {
		StepServe.begin(r.step)
		waiting = r.FillWaiting(waiting, place.Request{InBatch: true})
		StepBatch.begin(r.step)
		if changed, dropped := r.repairAll(waiting); changed {
			waiting = append(waiting, dropped...)
			r.Order(waiting)
			waiting = r.FillWaiting(waiting, place.Request{InBatch: true})
		}
		StepServe.begin(r.step)
		if slices.ContainsFunc(waiting, func(j *draft.Job) bool { return j.Tenant.Borrows() }) {
			r.Order(waiting)
			waiting = r.FillWaiting(waiting, place.Request{InBatch: true, MayBorrow: true})
		}
		more := r.Displace()
		if len(more) == 0 {
			break
		}
		for _, j := range more {
			if len(j.Tasks) > 0 && !slices.Contains(waiting, j) {
				r.Budget(j, len(j.Tasks))
				waiting = append(waiting, j)
			}
		}
		r.Order(waiting)
	}
	r.Seats = nil // nothing is repaired any more
	for _, j := range r.Jobs {
		if len(j.Tasks) > 0 && j.Finding() {
			r.LookOnly(j, place.Request{})
		}
	}
	r.Waiting = waiting
}
