// Package looks counts what a turn of a job looks for (parts of replicas, bookings, one
// provider for intents that belong together) against limits.work, so that it ends there.
//
// Invariant: looks are counted as if nothing were cached and never given back, so that each
// replica of the daemon and a replay stop at the same one.
//
// Callers: packages place and ahead, which say what a look is. One goroutine uses a Looks, that of its
// round; nil is for as many as there are.
package looks

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Looks are what one turn of a job may spend.
type Looks struct {
	Spent map[string]int64 // of the round, by tenant
	Of    string
	Most  int64  // of Spent at which the turn ends
	Trial bool   // what is placed is taken back
	What  string // they are for, as Explain says it

	over bool // something was not looked for
}

// Take spends n looks, and reports false where none is left.
func (l *Looks) Take(n int64) bool {
	switch {
	case l == nil:
		return true
	case l.Spent[l.Of] >= l.Most:
		l.over = true
		return false
	}
	l.Spent[l.Of] += n
	return true
}

// Spare spends n looks on what only people read, where so many are left.
func (l *Looks) Spare(n int64) bool {
	if l != nil && l.Spent[l.Of]+n > l.Most {
		return false
	}
	l.Spend(n)
	return true
}

// Ended reports whether something was not looked for.
func (l *Looks) Ended() bool { return l != nil && l.over }

// Explain makes a failure say that something was not looked for.
func (l *Looks) Explain(r *draft.Draft, f *draft.Failure) {
	if l.Ended() {
		f.Code = lifecycle.CodeWork
		f.Text = "the work of this round is used up (spec.limits.work of the fleet): what is left of " + l.What + " has its turn in one of the next rounds; " + f.Text
		l.Again(r)
	}
}

// Spend spends n looks that were taken.
func (l *Looks) Spend(n int64) {
	if l != nil {
		l.Spent[l.Of] += n
	}
}

// Again has what was not looked for looked for in a later round.
func (l *Looks) Again(r *draft.Draft) {
	if !l.Trial {
		r.Due(v1alpha1.TimeOf(r.Now.Truncate(time.Minute).Add(time.Minute)))
	}
}
