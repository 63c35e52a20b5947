package consolidate

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// A move takes no last room: a kind of request that is asked for now has room in spare offers
// after the move, or in as many as before it, that which the move leaves counted. Else what
// the move saves is lost by who comes next and is refused: one that may go anywhere would sit
// where alone another may.

const (
	// spare is in how many offers a move leaves room for a kind of request. With one, 1 of 20
	// seeds of intents that come and go cost 14 % more than without moves, with two and with
	// three at most 0 and 1 % (test/quality, TestOnlineArrivals_Seeds).
	spare = 2
	// maxKinds bounds the kinds of request that are asked about, the first by their intents.
	maxKinds = 256
)

// asked is a kind of request: an alternative of a job that stands for all alike.
type asked struct {
	job *draft.Job
	alt int
}

// kindsAsked are the kinds of request of the round's jobs, each once.
func (r *consolidation) kindsAsked() []asked {
	if r.kinds != nil {
		return r.kinds
	}
	seen := map[string]bool{}
	r.kinds = []asked{}
	for _, j := range r.Jobs {
		if j.In == nil || j.Warm() {
			continue
		}
		for alt := range j.Alternatives() {
			if len(r.kinds) == maxKinds {
				return r.kinds
			}
			r.Match.Trim()
			if key := r.ClassOf(j, alt).Key(); !seen[key] {
				seen[key] = true
				r.kinds = append(r.kinds, asked{j, alt})
			}
		}
	}
	return r.kinds
}

// leavesRoom makes a move, unless it takes the last room of a kind of request, and reports
// whether it did. old are the contracts that leave their places.
func (r *consolidation) leavesRoom(move func() bool, old ...*v1alpha1.Contract) bool {
	if !r.By(draft.RulesLastRoom) {
		return r.Try(move)
	}
	kinds := r.kindsAsked()
	if r.room == nil {
		r.room = make([]int, len(kinds))
		for i, k := range kinds {
			r.room[i] = r.roomFor(k)
		}
	}
	moved := r.Try(func() bool {
		if !move() {
			return false
		}
		m := r.Mark()
		defer r.Rollback(m)
		for _, c := range old {
			r.Lend(r.Latest(c))
		}
		for n := range kinds {
			i := (r.tight + n) % len(kinds) // which is first changes no answer
			if r.roomFor(kinds[i]) < min(r.room[i], spare) {
				r.tight = i
				return false
			}
		}
		return true
	})
	if moved {
		r.room = nil
	}
	return moved
}

// roomFor is in how many offers one more of a kind would find a place.
func (r *consolidation) roomFor(k asked) int {
	r.Match.Trim()
	return r.ClassOf(k.job, k.alt).Fitting
}
