package settle

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// cutText is why a contract ends whose capacity others have booked.
const cutText = "its capacity is booked by others from now on (preemption.yields)"

// books settles what time decides of an intent that books ahead, and reports whether it is
// one as any other from now on: its term has begun, or should have and nothing is booked.
func (r *Settler) books(j *draft.Job) bool {
	s := &j.In.Spec.Schedule
	end := v1alpha1.TimeOf(s.NotBefore.Add(s.Duration.Duration))
	r.dropChanged(j, s.NotBefore, end)
	r.starts.Begin(&r.Placer, j, j.In)
	r.dropChanged(j, s.NotBefore, end) // of what has just begun
	if len(j.Live)+len(j.Booked) == 0 && !r.hasBegun(j) && r.By(draft.RulesAgain) {
		j.Started = v1alpha1.Time{} // what it had was of another term
	}
	if len(j.Booked) == 0 && !j.Started.IsZero() {
		return true
	}
	if r.hasBegun(j) {
		r.starts.GiveUp(&r.Placer, j)
	}
	if len(j.Booked)+len(j.Live) == 0 && !end.After(r.Now.Time) && r.By(draft.RulesBookedWhole) {
		r.refuse(j, lifecycle.CodeTermEnded, "the term that it books ended "+draft.Stamp(end)+" before any of it began: change schedule.notBefore")
		return false
	}
	if len(j.Booked) == 0 && (len(j.Live) > 0 || r.hasBegun(j)) {
		return true
	}
	if !end.After(r.Now.Time) {
		return r.expire(j, "its term ended "+draft.Stamp(end))
	}
	changed := slices.ContainsFunc(j.Booked, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Digest != j.In.Digest })
	if changed || len(j.Live)+len(j.Booked) == 0 {
		code, why := r.unbookable(j)
		switch {
		case why != "" && changed:
			for _, c := range j.Booked {
				j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
			}
			j.Settle(draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentBooked, code, "its change is not made, what was booked before stays: %s", why)
			return false
		case why != "":
			r.refuse(j, code, why)
			return false
		}
	}
	if r.W.Deaf {
		r.deaf(j)
		return false
	}
	if len(j.Live) > 0 || r.hasBegun(j) { // the others begin as what was there before them goes
		for _, c := range j.Booked {
			j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
		}
		j.Settle(draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentBooked, "", "its term begins %s; what it booked begins as its capacity comes free", draft.Stamp(s.NotBefore))
		return false
	}
	r.Due(s.NotBefore)
	draft.Set(&r.Draft, &r.Bookers, append(draft.Own(&r.Draft, r.Bookers), j))
	return false
}

// dropChanged cancels what an intent whose term has begun has still booked, by what it
// asked for before: what is not Reserved yet follows as it was booked, or not at all. Where
// nothing has begun, but its file now says that its term has, what was booked to start at
// another time is cancelled: nothing waits for that any more.
func (r *Settler) dropChanged(j *draft.Job, from, to v1alpha1.Time) {
	if j.Started.IsZero() && !r.hasBegun(j) {
		return
	}
	for _, c := range slices.Clone(j.Booked) {
		text := "the intent changed after its term began"
		if j.Started.IsZero() {
			if c.Spec.Term.Start == from {
				continue // it begins as its capacity comes free
			}
			text = "the intent changed: its term has begun already"
		}
		if c = ahead.Rewrite(&r.Placer, j, c, from, to); c.Spec.Intent.Digest != j.In.Digest {
			draft.OnAxis(&r.Draft).CancelBooking(j, c, v1alpha1.PhaseReleased, lifecycle.CodeChanged, text)
		}
	}
}

// hasBegun reports whether the term that a job books has begun.
func (r *Settler) hasBegun(j *draft.Job) bool {
	return !j.In.Spec.Schedule.NotBefore.After(r.Now.Time)
}

// unbookable is why an intent may not book ahead.
func (r *Settler) unbookable(j *draft.Job) (code, why string) {
	s, b := &j.In.Spec.Schedule, &r.Fleet.Bookings
	switch q := j.Tenant.Spec.Quota; {
	case q == nil || !q.Book:
		return lifecycle.CodeNotBookable, "tenant " + j.TenantName + " may not book ahead: set quota.book: true in tenants/" + j.TenantName + ".yaml"
	case s.NotBefore.Sub(r.Now.Time) > b.Ahead():
		first := v1alpha1.TimeOf(s.NotBefore.Add(-b.Ahead()))
		r.Due(first)
		return lifecycle.CodeNotBookable, "it would start more than " + v1alpha1.Duration{Duration: b.Ahead()}.String() + " ahead (bookings.maxAhead of the fleet): it can be booked from " + draft.Stamp(first) + " on"
	}
	if t := r.LifeEnd(j, s.NotBefore); t.Refused != "" {
		return t.Code, t.Refused
	}
	return "", ""
}

// Ahead books what was settled to be booked, and reports whether that changed anything for
// others. Who found no place is asked again in the next turn. unclaimed calls a function as
// if nothing were kept for those that others give way to.
func (r *Settler) Ahead(unclaimed func(func())) (changed bool) {
	changed, waiting := ahead.Book(&r.Placer, r.Bookers, unclaimed)
	draft.Set(&r.Draft, &r.Bookers, waiting)
	return changed
}

// bookingBidders are the jobs that want their first bookings. What is booked is looked after
// whatever it costs: there are no more than limits.contracts of it.
func bookingBidders(r *Settler) (list []Bidder) {
	if !r.By(draft.RulesBookingsCounted) {
		return nil
	}
	for _, j := range r.Bookers {
		if len(j.Booked) == 0 {
			list = append(list, Bidder{Job: j, books: true})
		}
	}
	return list
}

// looksOfBooker is what a job that books looks at to find all its replicas at once, each so
// many, though for no more than its tenant may hold.
func looksOfBooker(r *Settler, j *draft.Job, each int64) int64 {
	n := int64(j.Replicas())
	if j.Tenant != nil {
		most, _ := r.Accounts.Most(j.Tenant)
		n = max(1, min(n, most-int64(j.Tenant.Contracts())))
	}
	return n * each
}

// chargeBooker puts on the bill what a job that books looks at.
func (b *bill) chargeBooker(j *draft.Job, each int64) {
	units := looksOfBooker(b.settler, j, each)
	b.tenants[j.TenantName] += units
	b.all += units
}

// dropBookers has jobs book in one of the next rounds.
func dropBookers(r *Settler, jobs map[*draft.Job]bool) {
	if len(jobs) > 0 {
		draft.Set(&r.Draft, &r.Bookers, slices.DeleteFunc(slices.Clone(r.Bookers), func(j *draft.Job) bool { return jobs[j] }))
	}
}

// cut decides what becomes of a contract that is past its end because it yields, or that
// could not be changed before its end came: where its capacity is booked by others from now
// on it ends, and its replica is placed again as any other that was lost; so it does where
// others have booked it later and its intent's change cannot give it an end before. What
// nobody has booked any more stays, as long as it may now. cut reports whether the contract
// yields, or has ended.
func (r *Settler) cut(j *draft.Job, c *v1alpha1.Contract) bool {
	axis, o := draft.OnAxis(&r.Draft), r.OfferOf(c)
	changed := c.Spec.Intent.Digest != j.In.Digest
	if !c.Spec.Term.Yields && !(changed && o != nil && r.By(draft.RulesBookings) && axis.HasBookings(o)) {
		return false
	}
	gone := o == nil
	if !gone && axis.HasBookings(o) {
		at, short := axis.Profile(o, map[string]bool{c.Metadata.Name: true}).Until(r.Now, v1alpha1.Time{}, axis.Ahead(o, c))
		gone = short && (changed || !at.After(r.Now.Time))
	}
	if gone {
		r.Drop(j, c, v1alpha1.PhaseExpired, lifecycle.CodeBooked, cutText)
	}
	return gone || c.Spec.Term.Yields
}

// promisesNothing is what is to be known of an intent that may not start yet and has not
// booked.
func promisesNothing(at v1alpha1.Time, s *v1alpha1.Schedule) string {
	text := "it may start from " + draft.Stamp(at) + " on; nothing is promised for then"
	if s.Book {
		return text + ": stage: find holds nothing, and books nothing either"
	}
	if len(s.Windows) > 0 {
		return text
	}
	if s.Duration.Duration > 0 {
		return text + ": schedule.book: true books it ahead"
	}
	return text + ": schedule.duration with schedule.book: true books it ahead"
}
