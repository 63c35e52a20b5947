package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Release is a contract on its way to an end. What was never applied, or is seen gone
// already, has nothing to drain.
func Release(books ledger.Books, c *v1alpha1.Contract, target v1alpha1.Phase, reason ledger.Reason, v *View) (*v1alpha1.Contract, error) {
	next, err := books.Release(c, target, reason, v.Now)
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	if c.Spec.Stage == v1alpha1.StageReserve || v.Observed.Consumer.Gone() {
		next.Status.Drained = v.Now
	}
	return next, nil
}

// Progress is a Releasing contract's next version, nil when nothing is seen that would
// move it along: drained when virtual node and Node are seen gone, ended when the slice
// and the provider's quota are too. Each step is a commit of its own, one a second at
// the most, so that a plan that was applied leaves nothing to do at the same instant:
// due is when the next step may be taken, zero where there is none or it is next.
func Progress(books ledger.Books, c *v1alpha1.Contract, v *View) (next *v1alpha1.Contract, due v1alpha1.Time) {
	next = step(books, c, v)
	if next != nil && (!c.Status.Since.Before(v.Now.Time) || c.Status.Drained == v.Now) {
		return nil, v1alpha1.Time{Time: v.Now.Add(time.Second)}
	}
	return next, due
}

// step is a Releasing contract's next version, whenever it may be taken.
func step(books ledger.Books, c *v1alpha1.Contract, v *View) *v1alpha1.Contract {
	if v.Forced.Code != "" {
		if next, err := books.Transition(c, v1alpha1.PhaseFailed, v.Forced, v.Now); err == nil {
			return next
		}
		return nil
	}
	if SeenGone(c, v) {
		if next, err := books.End(c, ledger.ReasonOf(c), v.Now); err == nil {
			return next
		}
		return nil
	}
	if c.Status.Drained.IsZero() && (c.Spec.Stage == v1alpha1.StageReserve || v.Observed.Consumer.Drained()) {
		next := *c
		next.Status.Drained = v.Now
		return &next
	}
	return nil
}

// SeenGone reports whether nothing is left of a contract on either side.
func SeenGone(c *v1alpha1.Contract, v *View) bool {
	undelivered := c.Spec.Stage == v1alpha1.StageReserve
	return (undelivered || v.Observed.Consumer.Gone()) && providerGone(c, v, undelivered)
}

// providerGone reports whether a contract's quota is seen to be gone on its provider.
// Without an agent there is nothing to see.
func providerGone(c *v1alpha1.Contract, v *View, undelivered bool) bool {
	o := v.Offer
	if o != nil {
		for _, name := range [...]string{c.Metadata.Name, c.Spec.Slice} {
			if holds(o.Flavor.Spec.Held[name]) {
				return false
			}
		}
	}
	if undelivered || (o != nil && o.Static) {
		return true
	}
	return v.Observed.ProviderSeen && !holds(v.Observed.ProviderHolds)
}

func holds(r v1alpha1.Resources) bool {
	for _, n := range r {
		if !n.IsZero() {
			return true
		}
	}
	return false
}

// Last is what a contract that has been given up, or has ended, was in trouble for just
// before: the code of the Degraded phase that its release ended, and since when. "" where
// it was in none, and for a contract that is charged.
func Last(c *v1alpha1.Contract) (code string, at v1alpha1.Time) {
	released := false
	for _, h := range slices.Backward(c.Status.History) {
		switch {
		case h.Phase == v1alpha1.PhaseReleasing:
			released = true
		case released && h.Phase == v1alpha1.PhaseDegraded:
			return h.Reason, h.At
		case released:
			return "", at
		}
	}
	return "", at
}

// Trouble is the code for which a contract is Degraded, or was given up: since when, or
// when it was released. "" for a contract of which neither is so.
func Trouble(c *v1alpha1.Contract) (code string, at v1alpha1.Time) {
	if c.Status.Phase == v1alpha1.PhaseDegraded {
		return c.Status.Reason, c.Status.Since
	}
	for _, h := range slices.Backward(c.Status.History) {
		if h.Phase == v1alpha1.PhaseReleasing {
			return h.Reason, h.At
		}
	}
	return "", at
}
