package ahead

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Begin makes Reserved those of a job's bookings whose term begins, or does so within the
// fleet's lead, as soon as their capacity is free, and ends those whose term is over. It
// notes when it is to be asked again. in is the job's intent, nil where its file is out of
// force: what that has changed does not begin before its start, as it is booked again then.
func Begin(r *place.Placer, j *draft.Job, in *model.Intent) {
	lead := r.Fleet.Bookings.LeadTime()
	for _, c := range slices.Clone(j.Booked) {
		term := c.Spec.Term
		if !term.End.After(r.Now.Time) {
			draft.OnAxis(&r.Draft).CancelBooking(j, c, v1alpha1.PhaseExpired, lifecycle.CodeTermEnded, "its term ended "+draft.Stamp(term.End))
			continue
		}
		early := v1alpha1.TimeOf(term.Start.Add(-lead))
		for _, at := range [...]v1alpha1.Time{early, term.Start, v1alpha1.TimeOf(term.Start.Add(r.Grace())), term.End} {
			r.Due(at)
		}
		if early.After(r.Now.Time) || r.W.Deaf {
			continue
		}
		if in != nil && term.Start.After(r.Now.Time) {
			s := &in.Spec.Schedule
			if c = Rewrite(r, j, c, s.NotBefore, v1alpha1.TimeOf(s.NotBefore.Add(s.Duration.Duration))); c.Spec.Intent.Digest != in.Digest {
				continue
			}
		}
		if !c.Status.Since.Before(r.Now.Time) { // booked within its lead: a plan that was applied leaves nothing to do at the same instant
			r.Due(v1alpha1.TimeOf(r.Now.Add(time.Second)))
			continue
		}
		if o := r.OfferOf(c); o == nil || !isFree(r, c) {
			continue
		}
		if nodesFree(r, c) {
			reserve(r, j, c, c.Spec.Nodes)
		} else if on := elsewhere(r, c); on != nil {
			reserve(r, j, c, on)
		}
	}
}

// tooLate reports whether a booking has not begun a grace period after it was to, and
// that is not because what was there before it is still to be seen gone: who had the
// capacity until the booking's start, and drains for long, does not displace it.
func tooLate(r *place.Placer, c *v1alpha1.Contract) bool {
	if c.Spec.Term.Start.Add(r.Grace()).After(r.Now.Time) {
		return false
	}
	o := r.OfferOf(c)
	if r.HeldBack.Provider(c.Spec.Provider) {
		return false
	}
	if o == nil {
		return isHeard(r, c.Spec.Provider)
	}
	switch o.State {
	case model.Lost, model.Withdrawn:
		return true
	case model.Fresh:
	default: // silence is not loss
		return false
	}
	free, leaves := o.Free().Clone().Sub(o.Growth), false
	for _, other := range draft.OnAxis(&r.Draft).ContractsOn(o) {
		end := other.Spec.Term.End
		if other.Status.Phase == v1alpha1.PhaseReleasing || other.Status.Phase.Charged() && !end.IsZero() && !end.After(r.Now.Time) {
			free, leaves = free.Add(r.Relief(o, other)), true
		}
	}
	return !leaves || !booking.Fits(draft.OnAxis(&r.Draft).Ahead(o, c), free)
}

// GiveUp ends the bookings of a job that did not begin in time.
func GiveUp(r *place.Placer, j *draft.Job) {
	if r.W.Deaf { // nothing began that might have
		return
	}
	for _, c := range slices.Clone(j.Booked) {
		if tooLate(r, c) {
			draft.OnAxis(&r.Draft).CancelBooking(j, c, v1alpha1.PhaseFailed, lifecycle.CodeBookingLost, "its capacity was not free at its start: "+lackText(r, c))
		}
	}
}

// isFree reports whether a booking's capacity is free from now until it ends, beside the
// bookings that come before it.
func isFree(r *place.Placer, c *v1alpha1.Contract) bool {
	o := r.OfferOf(c)
	if o.State != model.Fresh || o.Overdrawn() >= 0 {
		return false
	}
	size := draft.OnAxis(&r.Draft).Ahead(o, c)
	if !booking.Fits(size, o.Free().Clone().Sub(o.Growth)) {
		return false
	}
	if _, short := draft.OnAxis(&r.Draft).Profile(o, map[string]bool{c.Metadata.Name: true}).Until(r.Now, c.Spec.Term.Start, size); short && c.Spec.Term.Start.After(r.Now.Time) {
		return false // the time before its start is not its own: it takes that from no other booking
	}
	_, short := draft.OnAxis(&r.Draft).Profile(o, after(r, c)).Until(r.Now, c.Spec.Term.End, size)
	return !short
}

// after are a booking itself and those that are kept after it, by name.
func after(r *place.Placer, c *v1alpha1.Contract) map[string]bool {
	out := map[string]bool{c.Metadata.Name: true}
	for _, b := range draft.OnAxis(&r.Draft).ContractsOn(r.OfferOf(c)) {
		if b.Status.Phase == v1alpha1.PhaseBooked && Compare(&r.Draft, b, c) > 0 {
			out[b.Metadata.Name] = true
		}
	}
	return out
}

// Compare is the order in which bookings are kept: by priority, then those made first.
func Compare(r *draft.Draft, a, b *v1alpha1.Contract) int {
	return cmp.Or(cmp.Compare(r.Standing(b), r.Standing(a)), a.Status.Since.Compare(b.Status.Since.Time), strings.Compare(a.Metadata.Name, b.Metadata.Name))
}

// reserve begins a booking on nodes, with the figures of its offer as they are now.
func reserve(r *place.Placer, j *draft.Job, c *v1alpha1.Contract, on []v1alpha1.ContractNode) {
	next, err := r.Books.Transition(c, v1alpha1.PhaseReserved, undelivered(j), r.Now)
	if err != nil {
		return
	}
	o := r.OfferOf(c)
	d := next.Decision
	d.Market, d.Offer, d.Rules = r.W.Market, r.Inventory.Figures(o), r.RulesRecorded()
	d.Offer.Nodes = layout.Figures(o, on)
	next.Decision, next.Spec.Nodes = d, on
	r.EditJob(j)
	r.Change(c, next)
	j.Booked = slices.DeleteFunc(slices.Clone(j.Booked), func(x *v1alpha1.Contract) bool { return x == c })
	r.Replace(j, nil, next)
	r.NoteProgress()
	j.Started = next.Spec.Term.Start
	r.Due(next.Spec.Term.End)
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(next, draft.Place))
	j.Why, j.WhyCode = "its booking begins "+draft.Stamp(next.Spec.Term.Start), ""
}

func undelivered(j *draft.Job) ledger.Reason {
	if j.In == nil {
		return ledger.Reason{}
	}
	return lifecycle.Undelivered(j.In.Spec.FlavorType)
}

// Losses are the bookings of a market whose providers serve them no more, by name.
func Losses(r *place.Placer) (out []*v1alpha1.Contract) {
	if r.W.Deaf {
		return nil
	}
	for _, c := range r.W.Ledger.Bookings() {
		o := r.OfferOf(c)
		if gone := o == nil && isHeard(r, c.Spec.Provider) || o != nil && (o.State == model.Lost || o.State == model.Withdrawn); gone && !r.IsFrozenContract(c) {
			out = append(out, c)
		}
	}
	return out
}

// isHeard reports whether a provider is not in the fleet any more, or offers something now.
func isHeard(r *place.Placer, provider string) bool {
	return r.W.Clusters[provider] == nil || slices.ContainsFunc(r.Inventory.Offers(), func(o *inventory.Offer) bool { return o.Provider == provider && o.State == model.Fresh })
}

// lackText is what of a booking its offer lacks, and when.
func lackText(r *place.Placer, c *v1alpha1.Contract) string {
	o := r.OfferOf(c)
	if o == nil {
		return c.Spec.Provider + "/" + c.Spec.Flavor + " is no longer offered"
	}
	return lackIn(r, c, draft.OnAxis(&r.Draft).Profile(o, after(r, c)))
}

// room is what of an offer is free over time.
type room interface {
	Until(from, to v1alpha1.Time, size quantity.Vector) (at v1alpha1.Time, short bool)
	At(v1alpha1.Time) quantity.Vector
}

// lackIn is lackText of a booking whose offer there is, in what is free beside those that come
// before it.
func lackIn(r *place.Placer, c *v1alpha1.Contract, p room) string {
	o := r.OfferOf(c)
	size := draft.OnAxis(&r.Draft).Ahead(o, c)
	at, short := p.Until(c.Spec.Term.Start, c.Spec.Term.End, size)
	if !short {
		at = r.Now
	}
	free := p.At(at)
	if at == r.Now {
		free = o.Free()
	}
	for i := range size {
		k := (i + quantity.GPU) % len(size) // cards first
		if size[k] > max(free.At(k), 0) {
			name := r.Names.Name(k)
			return o.Ref + " has " + v1alpha1.AmountOf(max(free.At(k), 0)).Canonical(name) + " of " + v1alpha1.AmountOf(size[k]).Canonical(name) + " " + name + " for it at " + draft.Stamp(at)
		}
	}
	return o.Ref + " has too little for it at " + draft.Stamp(at)
}

// Seconds is how long a term lasts.
func Seconds(from, to v1alpha1.Time) int64 { return int64(to.Sub(from.Time) / time.Second) }

// Rewrite writes an intent's change into a booking where that alters nothing of what is
// booked for [from, to), and returns the booking as it is then: as it was where its replica
// is wanted no more.
func Rewrite(r *place.Placer, j *draft.Job, c *v1alpha1.Contract, from, to v1alpha1.Time) *v1alpha1.Contract {
	if c.Spec.Intent.Digest == j.In.Digest || c.Spec.Term.Start != from || c.Spec.Term.End != to || c.Spec.Intent.Replica >= j.Replicas() {
		return c
	}
	next := place.Rewritten(r, j, c)
	if next == nil {
		return c
	}
	r.Change(c, next)
	replace(r, j, c, next)
	return next
}

// replace puts a booking's next version in its place among a job's.
func replace(r *place.Placer, j *draft.Job, c, next *v1alpha1.Contract) {
	r.EditJob(j)
	j.Booked = slices.Clone(j.Booked)
	j.Booked[slices.Index(j.Booked, c)] = next
}

// nodesFree reports whether what a booking has of its offer's nodes is free from now until
// it ends, beside the bookings that come before it. A node that the offer no longer tells
// is not.
func nodesFree(r *place.Placer, c *v1alpha1.Contract) bool {
	m := draft.OnAxis(&r.Draft).Nodes(r.OfferOf(c), r.Now, c.Spec.Term.End, after(r, c))
	if m == nil {
		return true
	}
	for _, p := range layout.PartsOf(r.Names, r.OfferOf(c), c) {
		if !m.Holds(p) {
			return false
		}
	}
	return true
}

// elsewhere are other nodes of its offer on which a booking's parts lie one by one, nil
// where there are none: its nodes may have left the offer, or others linger there.
func elsewhere(r *place.Placer, c *v1alpha1.Contract) []v1alpha1.ContractNode {
	o := r.OfferOf(c)
	m := draft.OnAxis(&r.Draft).Nodes(o, r.Now, c.Spec.Term.End, after(r, c))
	if m == nil {
		return nil
	}
	parts := m.Moved(layout.PartsOf(r.Names, o, c))
	return layout.Written(r.Names, o, parts, &c.Spec)
}
