package planner

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// viewOf is what the round knows of a contract next to the ledger.
func (r *round) viewOf(c *v1alpha1.Contract) lifecycle.View {
	v := lifecycle.View{
		Now: r.now, Observed: r.w.Observed.Of(c.Metadata.Name), Grace: r.grace(), Deaf: r.w.Deaf, ReachedByPeer: r.w.Reached[c.Spec.Consumer],
		KeepsSilence: r.by(rulesSilentUntilHeard), Excess: r.excess[c.Metadata.Name],
	}
	if o := r.offerOf(c); o != nil {
		v.Offer = o.Offer
	}
	if r.w.ForceRelease[c.Metadata.Name] {
		v.Forced = ledger.Reason{Code: CodeForced, Message: "ended by an operator without being seen gone"}
	}
	return v
}

// transitionOf is what becomes of a charged contract by what clusters report of it.
func (r *round) transitionOf(c *v1alpha1.Contract) lifecycle.Transition {
	v := r.viewOf(c)
	t := lifecycle.Observe(c, &v)
	r.due(t.Due)
	return t
}

// observe moves a charged contract along its phases by what clusters report of it, and
// returns its current version. It decides nothing about the intent.
func (r *round) observe(c *v1alpha1.Contract) *v1alpha1.Contract {
	if !c.Status.Phase.Charged() {
		return c
	}
	t := r.transitionOf(c)
	next, statusOnly := t.Apply(r.books, c, r.now)
	switch {
	case next == c:
		return c
	case statusOnly:
		r.status(c, next)
	default:
		r.change(c, next)
	}
	r.plan.reworded = r.plan.reworded || t.Rewords(c)
	return next
}

// defaultGrace is FORMATS' default of a fleet's gracePeriod.
const defaultGrace = 5 * time.Minute

// progress moves a Releasing contract along. Held means held: what nobody has seen gone
// keeps its capacity.
func (r *round) progress(c *v1alpha1.Contract) *v1alpha1.Contract {
	v := r.viewOf(c)
	next, due := lifecycle.Progress(r.books, c, &v)
	r.due(due)
	if next == nil {
		return c
	}
	r.change(c, next)
	return next
}

// seenGone reports whether nothing is left of a contract on either side.
func (r *round) seenGone(c *v1alpha1.Contract) bool {
	v := r.viewOf(c)
	return lifecycle.SeenGone(c, &v)
}

// release starts a contract's way to an end and returns its current version.
func (r *round) release(c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) *v1alpha1.Contract {
	v := r.viewOf(c)
	next, err := lifecycle.Release(r.books, c, target, ledger.Reason{Code: code, Message: text}, &v)
	if err != nil {
		return c
	}
	if code == CodeChanged {
		r.noteReplaced(c)
	}
	r.change(c, next)
	r.noteReleasing(c)
	_, due := lifecycle.Progress(r.books, next, &v)
	r.due(due)
	return next
}

// noteReleasing puts a contract whose release this round began among those
// that are being released: who waits counts on it at once, as the next round
// would, and does not choose another place then. It is noted as it was, so that
// its latest version says whether that still holds.
func (r *round) noteReleasing(c *v1alpha1.Contract) {
	if !r.isFreed[c.Metadata.Name] {
		freed := r.freed
		r.isFreed[c.Metadata.Name] = true
		r.freed = append(freed, c)
		r.did(func() {
			delete(r.isFreed, c.Metadata.Name)
			r.freed = freed
		})
	}
}

// finishReleases moves every Releasing contract along: what is gone is gone
// before anything else is decided.
func (r *round) finishReleases() {
	for _, c := range byName(r.releasing) {
		r.progress(c)
	}
}

// latest is the current version of a contract.
func (r *round) latest(c *v1alpha1.Contract) *v1alpha1.Contract {
	if next := r.current[c.Metadata.Name]; next != nil {
		return next
	}
	return c
}
