package settle

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// refuse keeps what exists, on its terms, and states what is wrong.
func (r *Settler) refuse(j *draft.Job, code, why string) {
	r.HoldToTerms(j)
	if r.W.Deaf {
		r.deaf(j)
		return
	}
	for _, c := range append(slices.Clone(j.Live), j.Booked...) {
		j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
	}
	j.Settle(draft.Refuse, v1alpha1.IntentRefused, code, "%s", why)
}

func (r *Settler) deaf(j *draft.Job) {
	j.Silent = true
	j.Tasks, j.News = nil, nil
	for _, c := range append(slices.Clone(j.Live), j.Booked...) {
		j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
	}
	j.Settle(draft.Keep, "", lifecycle.CodeDeaf, "too few providers are heard to decide anything")
}

func (r *Settler) expire(j *draft.Job, why string) bool {
	r.ReleaseAll(j, v1alpha1.PhaseExpired, lifecycle.CodeTermEnded, why)
	j.Settle(draft.Done, v1alpha1.IntentDone, lifecycle.CodeTermEnded, "%s", why)
	return false
}

// wait queues an intent for an instant, without using up its timeout.
func (r *Settler) wait(j *draft.Job, code, why string) bool {
	if r.W.Deaf && len(j.Dec.Contracts) == 0 {
		r.deaf(j)
		return false
	}
	j.Settle(draft.Queued, v1alpha1.IntentQueued, code, "%s", why)
	return false
}
