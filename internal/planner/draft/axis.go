package draft

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
)

// ahead is what a round knows of bookings, by offer: how many there are on it and its
// peers, and how often this round has put contracts on it. It is made on first use, or
// where it would be taken back too often (LookAhead), and kept by Put and its rollback.
type ahead struct {
	booked  map[*inventory.Offer]int
	changed map[*inventory.Offer]map[string]int
	// offAccount are the contracts that are about to be replaced (Draft.OffAccount).
	offAccount map[string]bool
	// holdings are what bookings have of their offers' nodes.
	holdings map[*v1alpha1.Contract]*nodes.Holding
}

// Axis is a round's contracts on the time axis: what is booked, and what comes free when. It
// is a draft by another name.
type Axis struct{ *Draft }

// OnAxis is a draft's.
func OnAxis(r *Draft) Axis { return Axis{r} }

// LookAhead makes what is known of bookings, before anything is tried, where there are
// some.
func (r Axis) LookAhead() {
	if r.AnyBookings() {
		r.aheads()
	}
}

// aheads is ahead, made on first use.
func (r Axis) aheads() *ahead {
	if r.ahead != nil {
		return r.ahead
	}
	a := &ahead{booked: map[*inventory.Offer]int{}, changed: map[*inventory.Offer]map[string]int{}, offAccount: map[string]bool{}, holdings: map[*v1alpha1.Contract]*nodes.Holding{}}
	for _, c := range r.W.Ledger.Bookings() {
		a.count(r.OfferOf(c), nil, c)
	}
	for name, c := range r.Current {
		o := r.OfferOf(lastOf(r.Draft, name, c))
		a.note(o, name, 1)
		a.count(o, r.Before[name], c)
	}
	Set(r.Draft, &r.ahead, a)
	return a
}

// lastOf is a changed contract, or what it was where it is no more.
func lastOf(r *Draft, name string, c *v1alpha1.Contract) *v1alpha1.Contract {
	if c == nil {
		return r.Before[name]
	}
	return c
}

// note counts the puts of a contract on an offer.
func (a *ahead) note(o *inventory.Offer, name string, n int) {
	if o == nil {
		return
	}
	if a.changed[o] == nil {
		a.changed[o] = map[string]int{}
	}
	if a.changed[o][name] += n; a.changed[o][name] <= 0 {
		delete(a.changed[o], name)
	}
	if len(a.changed[o]) == 0 {
		delete(a.changed, o)
	}
}

// count notes that after takes the place of before, both of one offer; nil is none.
func (a *ahead) count(o *inventory.Offer, before, after *v1alpha1.Contract) {
	if o == nil {
		return
	}
	n := 0
	if before != nil && before.Status.Phase == v1alpha1.PhaseBooked {
		n--
	}
	if after != nil && after.Status.Phase == v1alpha1.PhaseBooked {
		n++
	}
	if n == 0 {
		return
	}
	for _, m := range append(slices.Clone(o.PoolPeers), o) {
		if a.booked[m] += n; a.booked[m] == 0 {
			delete(a.booked, m)
		}
	}
}

// noteAhead keeps ahead when a contract was put (1), or a put was taken back (-1).
func noteAhead(r *Draft, o *inventory.Offer, name string, before, after *v1alpha1.Contract, put int) {
	if before != nil && before.Status.Phase == v1alpha1.PhaseBooked {
		r.moreBooked--
	}
	if after != nil && after.Status.Phase == v1alpha1.PhaseBooked {
		r.moreBooked++
	}
	r.touched++
	if r.ahead == nil {
		return
	}
	r.ahead.note(o, name, put)
	r.ahead.count(o, before, after)
}

// Puts counts the contracts that were put on offers, and those that were taken back: while
// it stands, what was summed up of contracts stands.
func (r Axis) Puts() int { return r.touched }

// HasBookings reports whether capacity of an offer, or of one of its pool, is booked.
func (r Axis) HasBookings(o *inventory.Offer) bool {
	return r.AnyBookings() && r.aheads().booked[o] > 0
}

// AnyBookings reports whether any capacity of the market is booked.
func (r Axis) AnyBookings() bool { return r.W.Ledger.Booked()+r.moreBooked > 0 }
