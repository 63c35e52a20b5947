package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// TransitionOf is what becomes of a charged contract by what clusters report of it, and
// when that may change.
func (r *Draft) TransitionOf(c *v1alpha1.Contract) lifecycle.Transition {
	v := r.viewOf(c)
	return lifecycle.Observe(c, &v)
}

// Observe moves a charged contract along its phases by what clusters report of it, and
// returns its current version. It decides nothing about the intent.
func (r *Draft) Observe(c *v1alpha1.Contract) *v1alpha1.Contract {
	if !c.Status.Phase.Charged() {
		return c
	}
	t := r.TransitionOf(c)
	r.Due(t.Due)
	next, statusOnly := t.Apply(r.Books, c, r.Now)
	switch {
	case next == c:
		return c
	case statusOnly:
		r.Status(c, next)
	default:
		r.Change(c, next)
	}
	if !r.Plan.reworded && t.Rewords(c) {
		r.notePlan()
		r.Plan.reworded = true
	}
	return next
}

// NoteSolved notes that what came at once is solved as a batch.
func (r *Draft) NoteSolved() {
	if !r.Plan.solved {
		r.notePlan()
		r.Plan.solved = true
	}
}

// NoteReordered notes that what waits is ordered by all that it waits for.
func (r *Draft) NoteReordered() {
	if !r.Plan.reordered {
		r.notePlan()
		r.Plan.reordered = true
	}
}

// Progress moves a Releasing contract along. Held means held: what nobody has seen gone
// keeps its capacity.
func (r *Draft) Progress(c *v1alpha1.Contract) *v1alpha1.Contract {
	v := r.viewOf(c)
	next, due := lifecycle.Progress(r.Books, c, &v)
	r.Due(due)
	if next == nil {
		return c
	}
	r.Change(c, next)
	return next
}

// Release starts a contract's way to an end and returns its current version.
func (r *Draft) Release(c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) *v1alpha1.Contract {
	v := r.viewOf(c)
	charged := c.Status.Phase.Charged() && ledger.CancelCosts(&r.Fleet.Bookings, c, code, r.Now)
	if charged { // it was booked, and its term has not begun
		text += chargedText(&r.Fleet.Bookings)
	}
	next, err := lifecycle.Release(r.Books, c, target, ledger.Reason{Code: code, Message: text}, &v)
	if err != nil {
		return c
	}
	if charged {
		next = r.Books.ChargeTerm(next)
	}
	if code == lifecycle.CodeChanged {
		r.NoteReplaced(c)
	}
	r.Change(c, next)
	if charged {
		OnAxis(r).charge(next)
	}
	r.noteReleasing(c)
	_, due := lifecycle.Progress(r.Books, next, &v)
	r.Due(due)
	return next
}

// noteReleasing puts a contract whose release this round began among those
// that are being released: who waits counts on it at once, as the next round
// would, and does not choose another place then. It is noted as it was, so that
// its latest version shows whether that still applies.
func (r *Draft) noteReleasing(c *v1alpha1.Contract) {
	if !r.isFreed[c.Metadata.Name] {
		SetKey(r, r.isFreed, c.Metadata.Name, true)
		Set(r, &r.Freed, append(r.Freed, c))
	}
}
