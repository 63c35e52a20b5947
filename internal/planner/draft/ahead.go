package draft

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Profile is what of an offer is free over time, what an autoscaler could add left out.
// Contracts named in except count as not there. Others count at their size: what one was
// made smaller by leaves, as what is being released does, though nobody is sold it before
// that is reported (Footprint). (An offer without bookings has nothing
// but what is free now, and what ends.)
func (r Axis) Profile(o *inventory.Offer, except map[string]bool) *booking.Profile {
	p := &booking.Profile{Now: r.Now, Free: o.Free().Clone().Sub(o.Growth)}
	for _, c := range r.ContractsOn(o) {
		name, size := c.Metadata.Name, r.Ahead(o, c)
		switch {
		case c.Status.Phase == v1alpha1.PhaseBooked:
			if !except[name] {
				p.Holds = append(p.Holds, booking.Hold{Name: name, From: c.Spec.Term.Start, To: c.Spec.Term.End, Size: size})
			}
		case !c.Status.Phase.Held():
		case except[name]:
			p.Free = p.Free.Add(r.Relief(o, c))
		case r.lent[name]: // free already
		default:
			if more := r.Relief(o, c).Sub(size).Max(nil); !more.Within(nil) {
				p.Ends = append(p.Ends, booking.End{At: r.Now, Size: more})
			}
			if at := r.freeAt(c); !at.IsZero() {
				p.Ends = append(p.Ends, booking.End{At: at, Size: size})
			}
		}
	}
	return p
}

// Ahead is what a booking takes of an offer during its term, its own or one of its pool.
func (r Axis) Ahead(o *inventory.Offer, c *v1alpha1.Contract) quantity.Vector {
	at := r.OfferOf(c)
	if at == nil {
		return nil
	}
	v := inventory.Sold(r.Names, c, at.Flavor)
	if at == o {
		return v
	}
	return v[:min(len(v), quantity.Storage+1)]
}

// freeAt is when a held contract's capacity comes free for others, zero where that is not
// known: what is being released counts as leaving now, what is past its end and was not
// released then as staying.
func (r Axis) freeAt(c *v1alpha1.Contract) v1alpha1.Time {
	end := c.Spec.Term.End
	switch {
	case c.Status.Phase == v1alpha1.PhaseReleasing:
		return r.Now
	case c.Status.Displaced != nil && c.Status.Displaced.By == "": // else who it gives way to has it then
		end = lifecycle.Earlier(end, c.Status.Displaced.Leaves)
	}
	if !end.After(r.Now.Time) {
		return v1alpha1.Time{}
	}
	return end
}

// ContractsOn are the contracts that hold or have booked capacity of an offer and its
// pool, as the round has them now, by name.
func (r Axis) ContractsOn(o *inventory.Offer) []*v1alpha1.Contract {
	a := r.aheads()
	var out []*v1alpha1.Contract
	add := func(m *inventory.Offer) {
		changed := a.changed[m]
		for _, list := range [...][]*v1alpha1.Contract{m.Contracts, r.W.Ledger.BookedOn(m.Provider, m.Name)} {
			for _, c := range list {
				if changed[c.Metadata.Name] == 0 {
					out = append(out, c)
				}
			}
		}
		for name := range changed {
			c, known := r.Current[name]
			if !known {
				c = r.W.Ledger.Contract(name)
			}
			if c != nil {
				out = append(out, c)
			}
		}
	}
	add(o)
	for _, m := range o.PoolPeers {
		add(m)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Contract) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// bookingsOf are a tenant's bookings, as the round has them now, by name.
func (r Axis) bookingsOf(tenant string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	for _, c := range r.W.Ledger.Bookings() {
		if _, changed := r.Current[c.Metadata.Name]; !changed && c.Metadata.Namespace == tenant {
			out = append(out, c)
		}
	}
	for _, c := range r.Current {
		if c != nil && c.Metadata.Namespace == tenant && c.Status.Phase == v1alpha1.PhaseBooked {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Contract) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// BookedCost is what a tenant's bookings will cost of [from, to).
func (r Axis) BookedCost(tenant string, from, to v1alpha1.Time) (sum quantity.Micro) {
	if !r.AnyBookings() {
		return 0
	}
	m := r.money()
	for _, c := range r.bookingsOf(tenant) {
		sum = sum.Plus(m.Within(c, from, to))
	}
	return sum
}

// chargedOf are a tenant's charged contracts that are on its account, as the round has
// them now.
func (r Axis) chargedOf(tenant string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	off := r.aheads().offAccount
	for _, c := range r.Charged.Of(tenant) {
		if _, changed := r.Current[c.Metadata.Name]; !changed && !off[c.Metadata.Name] {
			out = append(out, c)
		}
	}
	for name, c := range r.Current {
		if c != nil && c.Metadata.Namespace == tenant && c.Status.Phase.Charged() && !off[name] {
			out = append(out, c)
		}
	}
	return out
}

// Narrow takes from limits of a placement for [from, to) what its tenant's bookings will
// take in that time; to zero is no end.
func (r Axis) Narrow(l *account.Limits, from, to v1alpha1.Time) {
	if !r.By(RulesBookings) || !r.AnyBookings() {
		return
	}
	booked := r.bookingsOf(l.Tenant.Name)
	if len(booked) == 0 {
		return
	}
	r.narrowBy(l, booked, r.chargedOf(l.Tenant.Name), from, to, false)
	r.Accounts.KeepForBooked(l, booked, r.Now)
}

// MayLast reports whether its tenant's quota and hourly budget allow a contract to last until
// an end (zero: none) with a size at a price, beside what the tenant has booked after the end
// that the contract has now: those bookings come first.
func (r Axis) MayLast(c *v1alpha1.Contract, end v1alpha1.Time, size *account.Size, cards *account.Cards, peak quantity.Micro) bool {
	was, t := c.Spec.Term.End, r.Accounts.Of(c.Metadata.Namespace)
	booked := r.bookingsOf(t.Name)
	if was.IsZero() || !end.IsZero() && !end.After(was.Time) || len(booked) == 0 {
		return true
	}
	m := r.Mark()
	defer r.Rollback(m)
	r.OffAccount(c)
	l := r.Accounts.LimitsAhead(t, was, was, nil, nil)
	r.narrowBy(&l, booked, r.chargedOf(t.Name), was, end, false)
	return l.Breaks(size, cards, peak) == ""
}

// narrowBy narrows limits at the starts of a tenant's bookings in [from, to), and, where
// the first instant counts, then too.
func (r Axis) narrowBy(l *account.Limits, booked, charged []*v1alpha1.Contract, from, to v1alpha1.Time, first bool) {
	for _, sum := range r.sumsIn(l.Tenant, booked, charged, from, to, first) {
		r.Accounts.NarrowBy(l, &sum)
	}
}

// sumsIn are what a tenant has at the starts of its bookings in [from, to), and, where the
// first instant counts, then too.
func (r Axis) sumsIn(t *account.Tenant, booked, charged []*v1alpha1.Contract, from, to v1alpha1.Time, first bool) []account.Sum {
	times := startsIn(booked, from, to, first)
	out := make([]account.Sum, 0, len(times))
	for _, at := range times {
		out = append(out, r.sumAt(t, booked, charged, at))
	}
	return out
}

// startsIn are the starts of bookings in [from, to), and, where it counts, the first instant.
func startsIn(booked []*v1alpha1.Contract, from, to v1alpha1.Time, first bool) []v1alpha1.Time {
	times := ledger.Starts(booked, from, to)
	if first && (len(times) == 0 || times[0] != from) {
		times = append(times, from)
	}
	return times
}

// sumAt is what a tenant has at an instant.
func (r Axis) sumAt(t *account.Tenant, booked, charged []*v1alpha1.Contract, at v1alpha1.Time) account.Sum {
	var then account.Ahead
	for _, c := range charged {
		if end := r.freeAt(c); !end.IsZero() && !end.After(at.Time) {
			then.Ended = append(then.Ended, c)
		}
	}
	for _, c := range booked {
		if during(c, at) {
			then.Booked = append(then.Booked, c)
		}
	}
	return r.Accounts.SumAhead(t, then)
}

// during reports whether an instant is in a booking's term.
func during(c *v1alpha1.Contract, at v1alpha1.Time) bool {
	return !c.Spec.Term.Start.After(at.Time) && c.Spec.Term.End.After(at.Time)
}

// CancelBooking ends a booking of a job before its term begins. Whether that costs is the
// fleet's rule; nothing of it is drained.
func (r Axis) CancelBooking(j *Job, c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) {
	charged := ledger.CancelCosts(&r.Fleet.Bookings, c, code, r.Now)
	if charged {
		text += chargedText(&r.Fleet.Bookings)
	}
	next, err := r.Books.Cancel(c, target, ledger.Reason{Code: code, Message: text}, charged, r.Now)
	if err != nil {
		return
	}
	r.EditJob(j)
	r.Change(c, next)
	if charged {
		r.charge(next)
	}
	j.Booked = slices.DeleteFunc(slices.Clone(j.Booked), func(x *v1alpha1.Contract) bool { return x == c })
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(next, Release))
	j.Why, j.WhyCode = text, code
}

// SpentOn is what a job's contracts have cost until now, those that have left the tree too,
// and what the round has charged for bookings that it cancelled.
func (r Axis) SpentOn(j *Job) (sum quantity.Micro) {
	if spent, err := r.Books.IntentSpent(r.W.Ledger, j.TenantName, j.Name, r.Now); err == nil {
		sum = quantity.Micro(spent.Micro())
	}
	if r.Fleet.Bookings.FreeUntil.Duration == 0 {
		return sum
	}
	for _, was := range r.W.Ledger.ByIntent(j.TenantName, j.Name) {
		if c := r.Latest(was); c != was && c.Spec.Term.Start.After(r.Now.Time) {
			sum += r.InFleet(r.Books.Accrued(c, r.Now).Sub(r.Books.Accrued(was, r.Now)), c.Spec.Price.Currency)
		}
	}
	return sum
}
