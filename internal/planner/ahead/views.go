package ahead

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
)

// views are what has been summed up of offers and of tenants while jobs book. Each booking
// that is made is added to them, and each that is cancelled or taken back is taken away, so
// that hundreds of replicas, or of intents, on one offer cost no more than each its own.
// Whatever else changes the draft forgets them.
type views struct {
	axis     draft.Axis
	puts     int // of the draft, as it was summed up
	epoch    int // how often all was forgotten
	offers   map[*inventory.Offer]*booking.Running
	ladders  map[*inventory.Offer]*ladder // as nothing is kept for those that others give way to
	rooms    map[*inventory.Offer]*roomIn
	sums     map[sumOf]*ledger.Sum
	promised map[*account.Tenant]*draft.Promised
	did      []booked // since all was forgotten
	each     int64    // LooksOfReplica
}

// booked is a booking of a tenant that was made, or is no more.
type booked struct {
	offer    *inventory.Offer // nil: there is none any more
	tenant   *account.Tenant
	contract *v1alpha1.Contract
	gone     bool
}

// moment is what a draft can be taken back to without forgetting.
type moment struct{ epoch, did int }

// sumOf is what a sum is of.
type sumOf struct {
	offer *inventory.Offer
	at    v1alpha1.Time
}

func newViews(r *draft.Draft) *views {
	v := &views{axis: draft.OnAxis(r)}
	v.forget()
	return v
}

// forget makes all be summed up again.
func (v *views) forget() {
	v.puts, v.did = v.axis.Puts(), nil
	v.epoch++
	v.offers, v.ladders = map[*inventory.Offer]*booking.Running{}, map[*inventory.Offer]*ladder{}
	v.rooms = map[*inventory.Offer]*roomIn{}
	v.sums, v.promised = map[sumOf]*ledger.Sum{}, map[*account.Tenant]*draft.Promised{}
}

// refresh forgets what no longer is as it was summed up.
func (v *views) refresh() {
	if v.puts != v.axis.Puts() {
		v.forget()
	}
}

// of is what of an offer is free over time.
func (v *views) of(o *inventory.Offer) *booking.Running {
	v.refresh()
	p := v.offers[o]
	if p == nil {
		p = booking.Follow(v.axis.Profile(o, nil))
		v.offers[o] = p
	}
	return p
}

// below is what an offer has free beside what it holds and what is kept before a booking. It
// is good until the next question.
func (v *views) below(o *inventory.Offer, c *v1alpha1.Contract) *booking.Running {
	v.refresh()
	l := v.ladders[o]
	if l == nil {
		l = newLadder(v.axis, o)
		v.ladders[o] = l
	}
	return l.below(rungOf(v.axis, o, c))
}

// roomIn is what of an offer's nodes is free during all of a term.
type roomIn struct {
	from, to v1alpha1.Time
	nodes    *nodes.Map
}

// nodes are what of an offer's nodes is free during all of a term, nil where it tells none; they
// are not to be changed. The term that was asked for last is kept: an intent's bookings have one.
func (v *views) nodes(o *inventory.Offer, from, to v1alpha1.Time) *nodes.Map {
	v.refresh()
	x := v.rooms[o]
	if x == nil || x.from != from || x.to != to {
		x = &roomIn{from, to, v.axis.Nodes(o, from, to, nil)}
		v.rooms[o] = x
	}
	return x.nodes
}

// lie books what a booking has of an offer's nodes (1), or gives it back (-1).
func (v *views) lie(o *inventory.Offer, c *v1alpha1.Contract, sign int64) {
	if x := v.rooms[o]; x != nil && c.Spec.Term.End.After(x.from.Time) && (x.to.IsZero() || c.Spec.Term.Start.Before(x.to.Time)) {
		x.nodes.Book(v.axis.BookedOn(o, c), sign)
	}
}

// keeps reports whether an offer holds all that is booked on it during a booking's term: then
// it holds that booking, whichever of the others come after it. False says nothing.
func (v *views) keeps(o *inventory.Offer, c *v1alpha1.Contract) bool {
	size := v.axis.Ahead(o, c)
	least, _ := v.of(o).Least(c.Spec.Term.Start, c.Spec.Term.End, size)
	for i, n := range size {
		if n > 0 && least.At(i) < 0 {
			return false
		}
	}
	return true
}

// figures are what contracts hold of an offer at an instant, and what its pool takes.
func (v *views) figures(o *inventory.Offer, at v1alpha1.Time) (held, pool v1alpha1.Resources) {
	v.refresh()
	if v.sums[sumOf{o, at}] == nil {
		list := map[*inventory.Offer][]*v1alpha1.Contract{}
		for _, c := range v.axis.ContractsOn(o) {
			m := v.axis.OfferOf(c)
			list[m] = append(list[m], c)
		}
		of := ledger.At
		if v.axis.By(draft.RulesAgain) && at.After(v.axis.Now.Time) {
			of = ledger.Later
		}
		v.sums[sumOf{o, at}] = ledger.SumAt(of, o.Flavor, list[o], at)
		for _, m := range o.PoolPeers {
			v.sums[sumOf{m, at}] = ledger.SumAt(of, m.Flavor, list[m], at)
		}
	}
	var peers []*ledger.Sum
	for _, m := range o.PoolPeers {
		peers = append(peers, v.sums[sumOf{m, at}])
	}
	return ledger.FiguresOf(v.sums[sumOf{o, at}], peers)
}

// limits are what a tenant's next booking of a term may take.
func (v *views) limits(t *account.Tenant, from, to v1alpha1.Time) account.Limits {
	v.refresh()
	p := v.promised[t]
	if !p.Holds() {
		p = v.axis.PromisedTo(t)
		v.promised[t] = p
	}
	return p.Limits(from, to)
}

// add adds a tenant's booking that was just put on an offer.
func (v *views) add(o *inventory.Offer, t *account.Tenant, c *v1alpha1.Contract) {
	v.follow(v.axis.Puts()-1, booked{offer: o, tenant: t, contract: c})
}

// remove takes away a tenant's booking that was cancelled after so many puts; where it was
// not, nothing is done.
func (v *views) remove(puts int, o *inventory.Offer, t *account.Tenant, c *v1alpha1.Contract) {
	if v.axis.Puts() == puts+1 {
		v.follow(puts, booked{offer: o, tenant: t, contract: c, gone: true})
	}
}

// follow brings up to date what was summed up after so many puts; something older is
// forgotten when it is asked for.
func (v *views) follow(puts int, b booked) {
	if v.puts != puts {
		return
	}
	v.puts++
	v.did = append(v.did, b)
	v.sum(b)
}

// rewritten notes that a booking was written again after so many puts, and takes what it took.
func (v *views) rewritten(puts int, o *inventory.Offer, was, is *v1alpha1.Contract) {
	if v.puts != puts || v.axis.Puts() != puts+1 {
		return
	}
	if was.Spec.Term.Start != is.Spec.Term.Start || was.Spec.Term.End != is.Spec.Term.End || !v.axis.Ahead(o, was).Equal(v.axis.Ahead(o, is)) || v.axis.Standing(was) != v.axis.Standing(is) || was.Status.Since != is.Status.Since {
		return
	}
	v.puts++
}

// begun notes that a booking was made Reserved after so many puts: it holds from now on what it
// had booked.
func (v *views) begun(puts int, o *inventory.Offer, was, is *v1alpha1.Contract) {
	if v.puts != puts || v.axis.Puts() != puts+1 {
		return
	}
	v.puts++
	v.epoch++ // takeBack knows of bookings alone
	v.did = nil
	clear(v.sums)
	clear(v.promised)
	clear(v.rooms)
	for _, m := range append([]*inventory.Offer{o}, o.PoolPeers...) {
		hold := holdOf(v.axis, m, is)
		hold.From = v.axis.Now
		if p := v.offers[m]; p != nil {
			p.Remove(hold.Name)
			p.Add(hold)
		}
		if l := v.ladders[m]; l != nil && l.remove(rungOf(v.axis, m, was)) {
			l.free.Add(hold)
		} else if l != nil {
			delete(v.ladders, m)
		}
	}
}

// sum adds a booking that was made to all that was summed up, or takes away one that is gone.
func (v *views) sum(b booked) {
	c := b.contract
	switch p := v.promised[b.tenant]; {
	case !p.Holds():
	case b.gone:
		p.Remove(c)
	default:
		p.Add(c)
	}
	if b.offer == nil {
		return
	}
	for _, m := range append([]*inventory.Offer{b.offer}, b.offer.PoolPeers...) {
		if p := v.offers[m]; p != nil && b.gone {
			p.Remove(c.Metadata.Name)
		} else if p != nil {
			p.Add(holdOf(v.axis, m, c))
		}
		if b.gone {
			v.lie(m, c, -1)
		} else {
			v.lie(m, c, 1)
		}
		if l := v.ladders[m]; l != nil && !b.gone {
			l.add(rungOf(v.axis, m, c))
		} else if l != nil && !l.remove(rungOf(v.axis, m, c)) {
			delete(v.ladders, m)
		}
	}
	v.figured(b)
}

// figured brings the figures of an offer and its pool up to date.
func (v *views) figured(b booked) {
	for of, sum := range v.sums {
		switch {
		case of.offer == b.offer && (b.gone || !sum.Add(b.contract)):
			delete(v.sums, of)
		case b.gone && slices.Contains(b.offer.PoolPeers, of.offer):
			delete(v.sums, of)
		}
	}
}

// moment is what the draft can be taken back to.
func (v *views) moment() moment {
	v.refresh()
	return moment{v.epoch, len(v.did)}
}

// takeBack takes the draft back to a moment, by a function, and with it what was summed up.
func (v *views) takeBack(to moment, rollback func()) {
	known := v.epoch == to.epoch && v.puts == v.axis.Puts()
	rollback()
	if !known {
		v.forget()
		return
	}
	for len(v.did) > to.did {
		last := v.did[len(v.did)-1]
		v.did = v.did[:len(v.did)-1]
		last.gone = !last.gone
		v.sum(last)
	}
	v.puts = v.axis.Puts()
}
