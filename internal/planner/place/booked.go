package place

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Capacity that is booked ahead is given to others only until the booking starts: to a
// contract whose term ends before, or to an intent that yields (preemption.yields), whose
// contract carries that instant as its end from the first day. A contract without an
// end counts as staying permanently.

// untilBooked keeps a job's contracts from what is booked; nil where nothing is.
type untilBooked struct{ writer contractWriter }

func axis(r *Placer) draft.Axis { return draft.OnAxis(&r.Draft) }

// untilBookedFor is that of a request, nil where nothing of the market is booked.
func untilBookedFor(r *Placer, j *draft.Job, q Request) *untilBooked {
	if !r.By(draft.RulesBookings) || !axis(r).AnyBookings() {
		return nil
	}
	return &untilBooked{contractWriter{r, j, q}}
}

// Breaks reports whether a candidate's capacity is booked by others before a contract
// would end.
func (u *untilBooked) Breaks(c *match.Candidate) bool {
	if u == nil || !axis(u.writer.Placer).HasBookings(c.Offer) {
		return false
	}
	at, short := u.short(c.Offer, c.Size, c.Quote, nil)
	if short && strings.HasPrefix(c.Fails, match.ReqCapacity) { // others would give way
		lack := c.Size.Clone().Sub(c.Offer.Free()).Max(nil)
		p := axis(u.writer.Placer).Profile(c.Offer, nil)
		p.Free, p.Grows = p.Free.Add(lack), c.Offer.Growth
		at, short = p.Until(u.writer.Now, u.writer.endOf(c.Quote), c.Size)
	}
	return short && (!yields(u.writer.job) || !at.After(u.writer.Now.Time))
}

// short is when the capacity of a contract that begins now is booked by others, and
// whether that is before it ends.
func (u *untilBooked) short(o *inventory.Offer, size quantity.Vector, q match.Quote, except map[string]bool) (at v1alpha1.Time, short bool) {
	p := axis(u.writer.Placer).Profile(o, except)
	p.Grows = o.Growth
	return p.Until(u.writer.Now, u.writer.endOf(q), size)
}

// detail states until when what an offer has free may be had.
func (u *untilBooked) detail(c *match.Candidate) string {
	if u == nil {
		return ""
	}
	at, _ := u.short(c.Offer, c.Size, c.Quote, nil)
	return fmt.Sprintf("what is free of %s is booked from %s on: a schedule.duration that ends before, or preemption.yields: booked, may have it until then", c.Offer.Ref, draft.Stamp(at))
}

// brokenText is until when the first offer that only bookings keep from a request may be
// had; "" for what is no booking.
func (u *untilBooked) brokenText(s *match.Class, l *Limits, req string) string {
	if u == nil || req != match.ReqBooked {
		return ""
	}
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Fails == "" && l.Rejects(c) == req {
			return u.detail(c)
		}
	}
	return ""
}

// BookedDetail explains until when a job may have what is free of a candidate.
func BookedDetail(r *Placer, j *draft.Job, c *match.Candidate) string {
	return untilBookedFor(r, j, Request{}).detail(c)
}

// yields reports whether an intent gives capacity back that others have booked.
func yields(j *draft.Job) bool { p := j.In.Spec.Preemption; return p != nil && p.Yields == "booked" }

// termOf is when a contract ends that has a size of an offer from now on, and whether that
// is because others have booked it; except are contracts that it takes the place of.
func (r contractWriter) termOf(o *inventory.Offer, size quantity.Vector, q match.Quote, except map[string]bool) (end v1alpha1.Time, cut bool) {
	end = r.endOf(q)
	if u := untilBookedFor(r.Placer, r.job, r.how); u != nil && yields(r.job) && axis(r.Placer).HasBookings(o) {
		if at, short := u.short(o, size, q, except); short {
			return at, true
		}
	}
	return end, false
}

// mayStay reports whether a contract may have a size of its offer until its intent now
// ends, as far as others have not booked it, and beside what its tenant has booked.
func (r inPlace) mayStay(size quantity.Vector, q match.Quote) bool {
	u := untilBookedFor(r.Placer, r.job, r.how)
	if u == nil {
		return true
	}
	if at, short := u.short(r.offer, size, q, r.self()); short && axis(r.Placer).HasBookings(r.offer) && !(yields(r.job) && at.After(r.Now.Time)) {
		return false
	}
	end, _ := u.writer.termOf(r.offer, size, q, r.self())
	n, cards := sizeOn(r.offer, size), account.Cards{GPU: r.offer.Flavor.Spec.GPU, Kind: r.offer.CardKind}
	return axis(r.Placer).MayLast(r.contract, end, &n, &cards, q.Peak)
}

func (r inPlace) self() map[string]bool { return map[string]bool{r.contract.Metadata.Name: true} }

// Rewritten is a booking with its intent's change, nil where that alters what is booked:
// its size, its place, or its price class. What it costs stays as it was booked.
func Rewritten(r *Placer, j *draft.Job, c *v1alpha1.Contract) *v1alpha1.Contract {
	here := inPlace{r, j, r.For(j, Request{}, 1), c, r.OfferOf(c)}
	if o := here.offer; o == nil || c.Spec.Consumer != j.Consumer || !c.Spec.VirtualNode.SameNodes(j.In.Spec.VirtualNode) || !r.obeys(j, here.how, c, o) || r.BarsOf(j).Breaks(c.Spec.Provider) != "" {
		return nil
	}
	for _, alt := range j.Alternatives() {
		if _, _, is := here.same(alt); is {
			next := *c
			contractWriter{r, j, here.how}.inscribe(&next.Spec)
			return &next
		}
	}
	return nil
}

// LimitsAhead are the limits of one more booking of a request's replicas for [from, to),
// with the rules on where it may be beside what is placed; others follow and those before
// it spent so much.
func LimitsAhead(r *Placer, j *draft.Job, q Request, s *match.Class, spent match.SpendLimits, others int64, replica int32, placed []*v1alpha1.Contract, from, to v1alpha1.Time) *Limits {
	l := r.LimitsFor(j, q, s, spent, others)
	l.Limits, l.booked = axis(r).LimitsAhead(j.Tenant, from, to), nil
	l.Rules = r.rulesFor(j, q, s, replica, placed)
	return l
}

// On is the request on one provider alone.
func (q Request) On(provider string) Request { q.provider = provider; return q }
