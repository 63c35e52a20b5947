package place

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// What looking for parts of replicas (spec.split) may cost a round is counted in looks: for
// each part one for each candidate, looksOfOrder for each that may take it, because they are
// put in order, and one for each candidate where a part of a size is tried on one of them.
// A tenant's jobs have limits.work of them in a round together, but each that has its turn
// has at least what one search costs that finds its parts at once (LooksOfParts), which
// package settle has charged it for. Looks are counted as if nothing were cached and never
// given back, so that each replica and a replay stop at the same one. What is tried on
// trial alone takes what is left.

const looksOfOrder = 3

const unlookedText = "the work of this round is used up (spec.limits.work of the fleet): what is left of the looks for parts of its replicas has its turn in one of the next rounds; "

// looks are what one turn of a job may spend on parts.
type looks struct {
	spent map[string]int64 // of the round, by tenant
	of    string
	most  int64 // of spent at which the turn ends
	over  bool  // something was not looked for
	trial bool  // what is placed is taken back
}

// take spends n looks, and reports false where none is left.
func (l *looks) take(n int) bool {
	switch {
	case l == nil:
		return true
	case l.spent[l.of] >= l.most:
		l.over = true
		return false
	}
	l.spent[l.of] += int64(n)
	return true
}

// ended reports whether something was not looked for.
func (l *looks) ended() bool { return l != nil && l.over }

// explain makes a failure say that something was not looked for.
func (l *looks) explain(r *Placer, f *draft.Failure) {
	if l != nil && l.over {
		f.Code = lifecycle.CodeWork
		f.Text = unlookedText + f.Text
		if !l.trial {
			r.Due(v1alpha1.TimeOf(r.Now.Truncate(time.Minute).Add(time.Minute)))
		}
	}
}
