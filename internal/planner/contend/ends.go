package contend

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Ending is something that is known to end: a contract, or the month.
type Ending struct {
	At       v1alpha1.Time
	Contract *v1alpha1.Contract
	Offer    *inventory.Offer // the contract's
	// reserved is a reservation whose intent will have ended by then.
	reserved *claim
	Month    bool
}

// Text is what ends, for people.
func (e *Ending) Text() string {
	switch {
	case e.Month:
		return "the month turns"
	case e.Contract.Status.Phase == v1alpha1.PhaseReleasing:
		return "what is being released is seen gone"
	case e.Contract.Status.Displaced != nil:
		return draft.KeyOf(e.Contract.Metadata.Namespace, e.Contract.Spec.Intent.Name) + " gives way"
	}
	return draft.KeyOf(e.Contract.Metadata.Namespace, e.Contract.Spec.Intent.Name) + " ends"
}

// GivesTo reports whether what ends makes room on an offer.
func (e *Ending) GivesTo(to *inventory.Offer) bool {
	is := func(o *inventory.Offer) bool { return o == to || slices.Contains(to.PoolPeers, o) }
	if e.reserved == nil {
		return is(e.Offer)
	}
	return slices.ContainsFunc(e.reserved.Reserved.whole, func(b draft.Taken) bool { return is(b.Offer) })
}

// Endings are what is known to end, in order.
func (r *Contest) Endings() []Ending {
	var out []Ending
	add := func(c *v1alpha1.Contract) {
		end, o := c.Spec.Term.End, r.OfferOf(c)
		switch {
		case o == nil || !c.Status.Phase.Held():
			return
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			end = r.Now
		case c.Status.Displaced != nil:
			end = lifecycle.Earlier(end, c.Status.Displaced.Leaves)
		}
		if !end.IsZero() {
			if end.Before(r.Now.Time) {
				end = r.Now
			}
			out = append(out, Ending{At: end, Contract: c, Offer: o})
		}
	}
	for _, list := range [...]map[string]*v1alpha1.Contract{r.Ending, r.Releasing} {
		for name, c := range list {
			if _, changed := r.Current[name]; !changed {
				add(c)
			}
		}
	}
	for _, c := range r.Current {
		if c != nil {
			add(c)
		}
	}
	for at, n := r.Now, 0; n < 2; n++ {
		_, end := r.Books.MonthBounds(at)
		out = append(out, Ending{At: end, Month: true})
		at = end
	}
	slices.SortFunc(out, EndsBefore)
	return out
}

// EndsBefore is the order of endings: by time, then by name.
func EndsBefore(a, b Ending) int {
	name := func(e Ending) string {
		switch {
		case e.reserved != nil:
			return e.reserved.key
		case e.Contract == nil:
			return ""
		}
		return e.Contract.Metadata.Name
	}
	return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(name(a), name(b)))
}
