package planner

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// denialTries is how often a round is made again at most for what it found denied.
const denialTries = 3

// agree makes a round that has decided again where what it leaves in the ledger puts other
// providers out of the market than it was decided by: a denial that was seen counts in
// the round that sees it, one that is over, or whose contract ends, no more. Else the next
// round, in which nothing has changed, would decide otherwise (invariant 3). The round
// that is left may be another; the one given is used up then.
func (r *round) agree() *round {
	if !r.By(draft.RulesDenialsSeen) {
		return r
	}
	for range denialTries {
		marks := r.marksLeft()
		if maps.Equal(marks, r.Marks) {
			break
		}
		if marks == nil {
			marks = map[string]draft.RefusalMark{} // nobody is out of the market, whatever the ledger still says
		}
		w, number, step, probe := r.given, r.Match.Round, r.step, r.Probe
		next := updatedBy(r.handOver(), &w, marks)
		if next == nil { // its intents are not in order
			next = newRoundBy(&w, marks)
		}
		next.Match.Round, next.step, next.Probe = number, step, probe.Again()
		StepObserve.begin(step)
		next.decide()
		for i := range next.Plan.Contracts { // the next round must know it
			if c := &next.Plan.Contracts[i]; denialChanged(c.Before, c.After) {
				c.StatusOnly = false
			}
		}
		r = next
	}
	return r
}

// denialChanged reports whether a contract records another denial after a round, or none.
func denialChanged(before, after *v1alpha1.Contract) bool {
	return denialOf(before) != denialOf(after)
}

func denialOf(c *v1alpha1.Contract) (out draft.RefusalRecord) {
	if c != nil {
		if rec, denied := draft.RefusalOf(c); denied {
			return rec
		}
	}
	return out
}

// marksLeft are the marks that the next round will find.
func (r *round) marksLeft() map[string]draft.RefusalMark {
	var left map[string]draft.RefusalRecord
	for name, before := range r.Before {
		after := r.Current[name]
		if !denialChanged(before, after) {
			continue
		}
		if left == nil {
			if left = maps.Clone(r.refusals); left == nil {
				left = map[string]draft.RefusalRecord{}
			}
		}
		delete(left, name)
		if rec := denialOf(after); rec != (draft.RefusalRecord{}) {
			left[name] = rec
		}
	}
	if left == nil {
		return r.Marks
	}
	return marksOf(left, r.W.Offers)
}
