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
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Starts begins the bookings of jobs, one job after the other, and keeps what it summed up of
// their offers: hundreds of bookings of one offer may begin at one instant. It is one round's;
// the zero value is ready.
type Starts struct{ views *views }

// of is what is summed up of a round's offers.
func (s *Starts) of(r *place.Placer) *views {
	if s.views == nil {
		s.views = newViews(&r.Draft)
	}
	return s.views
}

// Begin makes Reserved those of a job's bookings whose term begins, or does so within the
// fleet's lead, as soon as their capacity is free, and ends those whose term is over. It
// notes when it is to be asked again. in is the job's intent, nil where its file is out of
// force: what that has changed does not begin before its start, as it is booked again then.
func (s *Starts) Begin(r *place.Placer, j *draft.Job, in *model.Intent) {
	if len(j.Booked) == 0 {
		return
	}
	lead, v := r.Fleet.Bookings.LeadTime(), s.of(r)
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
			from, puts, was := in.Spec.Schedule.NotBefore, v.axis.Puts(), c
			c = Rewrite(r, j, c, from, v1alpha1.TimeOf(from.Add(in.Spec.Schedule.Duration.Duration)))
			v.rewritten(puts, r.OfferOf(c), was, c)
			if c.Spec.Intent.Digest != in.Digest {
				continue
			}
		}
		if !c.Status.Since.Before(r.Now.Time) { // booked within its lead: a plan that was applied leaves nothing to do at the same instant
			r.Due(v1alpha1.TimeOf(r.Now.Add(time.Second)))
			continue
		}
		if o := r.OfferOf(c); o == nil || !v.isFree(r, c) {
			continue
		}
		if nodesFree(r, c) {
			v.reserve(r, j, c, c.Spec.Nodes)
		} else if on := elsewhere(r, c); on != nil {
			v.reserve(r, j, c, on)
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
func (s *Starts) GiveUp(r *place.Placer, j *draft.Job) {
	if r.W.Deaf { // nothing began that might have
		return
	}
	v := s.of(r)
	for _, c := range slices.Clone(j.Booked) {
		if tooLate(r, c) {
			why, puts, o := v.lackText(r, c), v.axis.Puts(), r.OfferOf(c)
			v.axis.CancelBooking(j, c, v1alpha1.PhaseFailed, lifecycle.CodeBookingLost, "its capacity was not free at its start: "+why)
			v.remove(puts, o, j.Tenant, c)
		}
	}
}

// isFree reports whether a booking's capacity is free from now until it ends, beside the
// bookings that come before it.
func (v *views) isFree(r *place.Placer, c *v1alpha1.Contract) bool {
	o, start := r.OfferOf(c), c.Spec.Term.Start
	if o.State != model.Fresh || o.Overdrawn() >= 0 {
		return false
	}
	size := v.axis.Ahead(o, c)
	if !booking.Fits(size, o.Free().Clone().Sub(o.Growth)) {
		return false
	}
	if start.After(r.Now.Time) {
		if _, short := v.of(o).Until(r.Now, start, size); short {
			return false // the time before its start is not its own: it takes that from no other booking
		}
	}
	_, short := v.below(o, c).Until(r.Now, c.Spec.Term.End, size)
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
func (v *views) reserve(r *place.Placer, j *draft.Job, c *v1alpha1.Contract, on []v1alpha1.ContractNode) {
	next, err := r.Books.Transition(c, v1alpha1.PhaseReserved, undelivered(j), r.Now)
	if err != nil {
		return
	}
	o := r.OfferOf(c)
	d := next.Decision
	d.Market, d.Offer, d.Rules = r.W.Market, r.Inventory.Figures(o), r.RulesRecorded()
	d.Offer.Nodes = layout.Figures(o, on)
	next.Decision, next.Spec.Nodes, next.Spec.GPUs = d, on, onCards(o, next.Spec.GPUs, on)
	r.EditJob(j)
	puts := v.axis.Puts()
	r.Change(c, next)
	v.begun(puts, o, c, next)
	j.Booked = slices.DeleteFunc(slices.Clone(j.Booked), func(x *v1alpha1.Contract) bool { return x == c })
	r.Replace(j, nil, next)
	r.NoteProgress()
	j.Started = next.Spec.Term.Start
	r.Due(next.Spec.Term.End)
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(next, draft.Place))
	j.Why, j.WhyCode = "its booking begins "+draft.Stamp(next.Spec.Term.Start), ""
}

// onCards are a booking's GPUs with the cards on which its instances lie from its begin on,
// those of the nodes on which it lies.
func onCards(o *inventory.Offer, gpus *v1alpha1.ContractGPU, on []v1alpha1.ContractNode) *v1alpha1.ContractGPU {
	if gpus == nil || o.Cards() == nil {
		return gpus
	}
	out := *gpus
	if o.Nodes() != nil {
		out.Cards = match.CardsOn(o, on, nil, true)
	} else {
		out.Cards = o.Cards().MostUsed(out.Count)
	}
	return &out
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
func (v *views) lackText(r *place.Placer, c *v1alpha1.Contract) string {
	o := r.OfferOf(c)
	if o == nil {
		return c.Spec.Provider + "/" + c.Spec.Flavor + " is no longer offered"
	}
	return lackIn(r, c, v.below(o, c))
}

// lackIn is lackText of a booking whose offer there is, in what is free beside those that come
// before it.
func lackIn(r *place.Placer, c *v1alpha1.Contract, p *booking.Running) string {
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
