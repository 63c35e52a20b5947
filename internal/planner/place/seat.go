package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// renames reports whether an intent chooses what a namespace of it is called at
// providers: two that are placed at once may choose the same.
func renames(j *draft.Job) bool {
	if j.In == nil || j.In.Spec.Offload == nil {
		return false
	}
	for i := range j.In.Spec.Offload.Namespaces {
		if s := j.In.Spec.Offload.Namespaces[i].NamespaceMappingStrategy; s != "" && s != "DefaultName" {
			return true
		}
	}
	return false
}

// Seat is one replica of a batch: where it is placed, or that it has no place.
type Seat struct {
	Job   *draft.Job
	Task  draft.Task
	Alt   int
	Class *match.Class
	// At and Contract are nil while it has no place. At is a copy, of what does not
	// change: the class's own may be evicted.
	At       *match.Candidate
	Contract *v1alpha1.Contract
	Ordinal  int32
	// Parts are those that it is put together from, in place of At and Contract.
	Parts []SeatPart
	// First is the contract that it came with, or FirstParts; Started the job's start before.
	First      *v1alpha1.Contract
	FirstParts []SeatPart
	Started    v1alpha1.Time
}

// Movable reports whether an intent wants nothing but a low price, and can be
// moved within its batch: what depends on others of its replicas goes as a whole.
func (r *Placer) Movable(j *draft.Job) bool {
	if j.In == nil || j.Finding() {
		return false
	}
	if w := r.Match.WeightsOf(&j.In.Spec); !w.ByCostAlone() {
		return false
	}
	if j.In.Spec.Split != nil && !divided(r, j) || j.Avoid != nil || renames(j) || rules.BarsOf(&r.Draft, j) != nil {
		return false
	}
	if w, ok := WithinOf(r, j.In); ok && OnNodes(r, w) {
		return false // the search knows domains of offers alone
	}
	if j.Replicas() == 1 {
		return true
	}
	own := MoneyWithout(r, j, nil)
	return (j.Gang() || !r.Ruled(j) && own.Hourly >= quantity.Unlimited) && own.HourlySpot == own.Hourly && own.Total >= quantity.Unlimited
}

// MoneyWithout is what a job may spend if it had none of some contracts.
func MoneyWithout(r *Placer, j *draft.Job, except []*v1alpha1.Contract) match.SpendLimits {
	return r.For(j, Request{}, 1, except...).spending.Money
}

// Ruled reports whether an intent's place depends on where others are.
func (r *Placer) Ruled(j *draft.Job) bool {
	related, k := r.Relations(), draft.KeyOfJob(j)
	return len(j.In.Spec.Placement.Spread)+len(related.Together[k])+len(related.Apart[k]) > 0
}

// sit notes a replica that was placed, for the repair of its batch.
func (r *Placer) sit(j *draft.Job, q Request, t draft.Task, s Seat) {
	if !q.InBatch || q.Only != nil || t.Kind != draft.TaskFresh || t.Old != nil || s.Contract != nil && s.Contract.Decision.Claimed != "" || !r.Movable(j) {
		return
	}
	mine := s // only what is kept is allocated
	if s.At != nil {
		mine.At = s.At.Fixed()
	}
	mine.Job, mine.Task, mine.First, mine.FirstParts, mine.Ordinal, mine.Started = j, t, s.Contract, s.Parts, s.Held()[0].Spec.Intent.Ordinal, j.Started
	draft.Set(&r.Draft, &r.Seats, append(r.Seats, &mine))
}

// Recount gives back the numbers of contracts that were only tried, or are given up.
func (r *Placer) Recount(s *Seat) {
	for i := range s.FirstParts {
		if of := &s.FirstParts[i].Contract.Spec.Intent; of.Part > 0 {
			r.SetOrdinal(s.Job, OrdinalKey(of.Replica, of.Part), of.Ordinal)
		}
	}
	key := OrdinalKey(s.Task.Replica, 0)
	if s.Ordinal > 0 {
		r.SetOrdinal(s.Job, key, s.Ordinal)
	} else {
		draft.Delete(&r.Draft, s.Job.Ordinals, key)
	}
}
