package place

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Capacity that is booked ahead is given to others only until the booking starts: to a
// contract whose term ends before, or to an intent that yields (preemption.yields), whose
// contract carries that instant as its end from the first day. A contract without an
// end counts as staying permanently.

// untilBooked keeps a job's contracts from what is booked; nil where nothing is.
type untilBooked struct{ writer contractWriter }

// untilBookedFor is that of a request, nil where nothing of the market is booked.
func untilBookedFor(r *Placer, j *draft.Job, q Request) *untilBooked {
	if !r.By(draft.RulesBookings) || !draft.OnAxis(&r.Draft).AnyBookings() {
		return nil
	}
	return &untilBooked{contractWriter{r, j, q}}
}

// Breaks reports whether a candidate's capacity is booked by others before a contract
// would end.
func (u *untilBooked) Breaks(c *match.Candidate) bool {
	if u == nil || !draft.OnAxis(&u.writer.Placer.Draft).HasBookings(c.Offer) {
		return false
	}
	at, short := u.short(c.Offer, c.Size, c.Quote, nil)
	if short && strings.HasPrefix(c.Fails, match.ReqCapacity) { // others would give way
		lack := c.Size.Clone().Sub(c.Offer.Free()).Max(nil)
		p := draft.OnAxis(&u.writer.Placer.Draft).Profile(c.Offer, nil)
		p.Free, p.Grows = p.Free.Add(lack), c.Offer.Growth
		at, short = p.Until(u.writer.Now, u.writer.endOf(c.Quote), c.Size)
	}
	return short && (!yields(u.writer.job) || !at.After(u.writer.Now.Time))
}

// short is when the capacity of a contract that begins now is booked by others, and
// whether that is before it ends.
func (u *untilBooked) short(o *inventory.Offer, size quantity.Vector, q match.Quote, except map[string]bool) (at v1alpha1.Time, short bool) {
	p := draft.OnAxis(&u.writer.Placer.Draft).Profile(o, except)
	p.Grows = o.Growth
	return layout.Until(u.writer.Match, &u.writer.Placer.Draft, p, u.writer.how.alternatives(u.writer.job), o, size, u.writer.endOf(q), except)
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
func (u *untilBooked) brokenText(s *match.Class, rejects func(*match.Candidate) string, req string) string {
	if u == nil || req != match.ReqBooked {
		return ""
	}
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Fails == "" && rejects(c) == req {
			return u.detail(c)
		}
	}
	return ""
}

// BookedDetail explains until when a job may have what is free of a candidate.
func BookedDetail(r *Placer, j *draft.Job, c *match.Candidate) string {
	return untilBookedFor(r, j, Request{}).detail(c)
}
