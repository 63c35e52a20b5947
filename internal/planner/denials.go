package planner

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// denialChanged reports whether a contract records another denial after a round, or none.
func denialChanged(r *round, before, after *v1alpha1.Contract) bool {
	return denialOf(r, before) != denialOf(r, after)
}

func denialOf(r *round, c *v1alpha1.Contract) (out draft.RefusalRecord) {
	if c != nil {
		if rec, denied := r.RefusalOf(c); denied {
			return rec
		}
	}
	return out
}

// marksLeft are the marks that the next round will find.
func marksLeft(r *round) map[string]draft.RefusalMark {
	left, changed := r.refusals, false
	note := func(name string, rec draft.RefusalRecord) {
		if !changed {
			left, changed = maps.Clone(r.refusals), true
		}
		if delete(left, name); rec != (draft.RefusalRecord{}) {
			left[name] = rec
		}
	}
	for name, before := range r.Before {
		if after := r.Current[name]; denialChanged(r, before, after) {
			note(name, denialOf(r, after))
		}
	}
	if r.retire {
		for _, c := range r.Plan.Contracts { // what leaves the tree
			if c.After == nil && denialChanged(r, c.Before, nil) {
				note(c.Before.Metadata.Name, draft.RefusalRecord{})
			}
		}
	}
	if !changed {
		return r.Marks
	}
	return marksOf(left, r.W.Offers)
}
