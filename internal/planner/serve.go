package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// Those that wait have their turns by priority, then the older intent
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

// displacements bounds how often those that wait are served again: each time but the
// last made somebody give way, or let somebody off.
const displacements = 8

// lineUp puts the jobs that have something to do into the order of their turns.
func (r *round) lineUp() {
	StepServe.begin(r.step)
	var waiting []*draft.Job
	for _, j := range r.Jobs {
		if (len(j.Tasks) == 0 && !j.Warm()) || j.Finding() {
			continue
		}
		waiting = append(waiting, j)
	}
	r.Order(waiting)
	r.Waiting = waiting
}

// serve gives each that waits its turn, within its tenant's quota.
func (r *round) serve() {
	StepServe.begin(r.step)
	r.Waiting = r.FillWaiting(r.Waiting, place.Request{InBatch: true})
}

// batch solves as a whole what came at once, and reports whether anything moved;
// dropped are the jobs that lost their place to others of their batch.
func (r *round) batch() (moved bool, dropped []*draft.Job) {
	StepBatch.begin(r.step)
	return r.repairAll(r.Waiting)
}

// serveAgain serves those for whom the batch changed something, and then those that
// may borrow what others leave of their quotas.
func (r *round) serveAgain(moved bool, dropped []*draft.Job) {
	StepServe.begin(r.step)
	if moved {
		r.Waiting = append(r.Waiting, dropped...)
		r.Order(r.Waiting)
		r.Waiting = r.FillWaiting(r.Waiting, place.Request{InBatch: true})
	}
	if slices.ContainsFunc(r.Waiting, func(j *draft.Job) bool { return j.Tenant.Borrows() }) {
		r.Order(r.Waiting)
		r.Waiting = r.FillWaiting(r.Waiting, place.Request{InBatch: true, MayBorrow: true})
	}
}

// displace makes contracts give way to those that still wait. It reports whether one
// of them has something to do now.
func (r *round) displace() bool {
	more := r.Displace()
	for _, j := range more {
		if len(j.Tasks) > 0 && !slices.Contains(r.Waiting, j) {
			r.Waiting = append(r.Waiting, j)
		}
	}
	if len(more) > 0 {
		r.Order(r.Waiting)
	}
	return len(more) > 0
}

// lookOnly shows those what they would get that only want to know.
func (r *round) lookOnly() {
	r.Seats = nil // no batch is solved any more
	for _, j := range r.Jobs {
		if len(j.Tasks) > 0 && j.Finding() {
			r.Match.Trim()
			r.LookOnly(j, place.Request{})
		}
	}
}
