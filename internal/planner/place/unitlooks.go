package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
)

// looks are what one search for the unit may spend, nil for as many as there are.
func (u *unit) looks(key string, q Request) *looks.Looks {
	if !u.By(draft.RulesTogetherCounted) {
		return nil
	}
	l := looks.ForUnit(u.Parts, u.jobs, u.Limits.Work, len(u.Inventory.Offers()), !u.searched[key], q.DryRun || q.Unasked)
	u.searched[key] = u.searched[key] || !l.Trial
	return l
}

// unlooked is the failure of a job whose unit was not looked for on all providers.
func (u *unit) unlooked(j *draft.Job, l *looks.Looks) draft.Failure {
	l.Again(&u.Draft)
	return draft.Failure{Task: j.Tasks[0], Class: u.ClassOf(j, 0), Code: lifecycle.CodeWork, Rejected: map[string]int{}, Text: looks.UnsearchedText}
}

// infeasible is under what a unit was found to fit nowhere, and by which request.
type infeasible struct {
	at             looks.At
	borrows, loose bool
	only           *inventory.Offer
	in             domainChoice
	shared         *domain.Rule
}

// found is what is remembered of a unit that fits nowhere now.
func (r *Placer) found(q Request) infeasible {
	return infeasible{looks.Now(&r.Draft), q.MayBorrow, q.Loose, q.Only, q.in, q.shared}
}

// still reports whether a unit that was found to fit nowhere need not be tried: nothing was
// touched since, or all of it was taken back. A copy of a job may ask for something else.
func (x infeasible) still(now infeasible, isCopy bool) bool {
	was := x.at
	x.at = now.at
	return !was.Touched(now.at) || !was.Moved(now.at) && x == now && !isCopy
}
