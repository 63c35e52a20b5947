package settle

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// A provider takes spot capacity back in one of three ways:
//
//   - it drains the flavor or the cluster: everybody moves until the time it
//     names, spot or not; what is left then of spot ends as Preempted
//   - it reports the flavor no more (and reports otherwise)
//   - it reports the flavor without a spot price
//
// In the latter two it names no time: the notice is as long as the intent's
// own preemption.grace, none without one. Until then another place is looked
// for, new first; should spot be sold again before, the contract may stay. A
// flavor without any price is a table that is missing, not an interruption.

// Interrupted reports whether the provider of a charged spot contract takes its
// capacity back without naming a time.
func (r *Settler) Interrupted(c *v1alpha1.Contract, o *inventory.Offer) bool {
	if c.Spec.Price.Class != v1alpha1.Spot || o == nil || r.W.Deaf {
		return false
	}
	switch o.State {
	case model.Withdrawn:
		return !r.HeldBack.Provider(o.Provider)
	case model.Fresh:
		t := r.Match.TariffOf(o)
		return t.Why() == "" && !t.Spot()
	}
	return false
}

// interrupt gives a spot contract notice that its provider takes it back, or
// lets it off again, and returns its current version.
func (r *Settler) interrupt(j *draft.Job, c *v1alpha1.Contract) *v1alpha1.Contract {
	if r.W.Deaf {
		return c
	}
	is := r.Interrupted(c, r.OfferOf(c))
	var grace time.Duration
	if is {
		grace = r.GraceOf(c)
	}
	next := lifecycle.Interrupt(c, is, r.Now, grace)
	if next == nil {
		return c
	}
	if is {
		r.EditJob(j)
		j.Noticed = true
	}
	r.Change(c, next)
	r.Replace(j, c, next)
	return next
}
