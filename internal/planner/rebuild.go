package planner

import (
	"cmp"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"slices"
)

// Chains move one seat and those in its way. What they do not find is that an
// offer would serve more if it were packed anew: one seat with much memory
// holds the place of two with less, and small ones that could go anywhere fill
// the rest. Rebuilding an offer lets everybody on it and everybody without a
// place choose again: a knapsack of the offer's room, in which a seat is worth
// what it would cost elsewhere less what it costs here.

// rebuildRounds bounds how often all offers are looked at.
const rebuildRounds = 4

// rebuild packs offers anew where that makes the batch cheaper, and places
// those without a place. It reports whether anything changed.
func (p *repairs) rebuild(without []*job) (changed bool) {
	seats := p.seats
	p.seats = append(slices.Clip(seats), p.extras(without)...)
	for range rebuildRounds {
		again := false
		for _, o := range p.offersInOrder() {
			if p.looks <= 0 {
				break
			}
			again = p.rebuildOffer(o) || again
		}
		changed = changed || again
		if !again {
			break
		}
	}
	p.settled(len(seats))
	return changed
}

// stake is what a seat on an offer, or one without a place, wins there.
type stake struct {
	seat *seat
	to   *candidate
	// worth is what it costs elsewhere less what it costs here.
	worth quantity.Micro
	// share of the offer's scarcest resource that it takes.
	share float64
	here  bool
}

// rebuildOffer packs one offer anew.
func (p *repairs) rebuildOffer(o *offer) bool {
	var list []stake
	asked := false
	p.looks -= len(p.seats) / 8 // a glance at each
	for _, s := range p.seats {
		here := s.at != nil && s.at.offer == o
		if !here && (s.at != nil || s.bound() || !s.droppable()) {
			continue
		}
		c := s.shape.of(o)
		if c == nil || c.money != "" || c.vague {
			continue
		}
		k := stake{seat: s, to: c, here: here, worth: penalty(s.shape) - c.quote.current()}
		if here {
			p.looks--
			p.refresh(s.shape)
			x := search{repairs: p, used: []*offer{o}}
			away := x.free(s.shape)
			if away == nil && !s.droppable() {
				k.worth = quantity.Unlimited // it must stay
			} else {
				k.worth = priceOf(s.shape, away) - c.quote.current()
			}
		}
		asked = asked || !here
		list = append(list, k)
	}
	if !asked {
		return false
	}
	room, now := o.free.Clone(), quantity.Micro(0)
	for i := range list {
		if list[i].here {
			room = room.Add(list[i].seat.at.size)
			now += list[i].worth
		}
	}
	for i := range list {
		for r, n := range list[i].to.size {
			if have := room.At(r); n > 0 && have > 0 {
				list[i].share = max(list[i].share, float64(n)/float64(have))
			}
		}
	}
	kept := pack(list, room, now)
	return kept != nil && p.repack(list, kept)
}

// pack chooses who is on an offer with so much room, worth more than now; nil
// when nobody found how. The first order takes those that are worth most for
// what they take, the second those that are worth most.
func pack(list []stake, room quantity.Vector, now quantity.Micro) (kept []bool) {
	orders := [...]func(a, b *stake) int{
		func(a, b *stake) int {
			return cmp.Compare(float64(b.worth)*max(a.share, 1e-9), float64(a.worth)*max(b.share, 1e-9))
		},
		func(a, b *stake) int { return cmp.Compare(b.worth, a.worth) },
	}
	order := make([]int, len(list))
	for _, by := range orders {
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return by(&list[a], &list[b]) })
		left, sum, in := room.Clone(), quantity.Micro(0), make([]bool, len(list))
		for _, i := range order {
			if k := &list[i]; k.worth > 0 && k.to.size.Within(left) {
				left, sum, in[i] = left.Sub(k.to.size), sum+k.worth, true
			}
		}
		if sum > now {
			kept, now = in, sum
		}
	}
	return kept
}

// repack makes an offer hold those that are kept, sends the others that are on
// it elsewhere, and takes all back when that costs more in all.
func (p *repairs) repack(list []stake, kept []bool) bool {
	from := len(p.done)
	cost := func() (sum quantity.Micro) {
		for i := range list {
			sum += priceOf(list[i].seat.shape, list[i].seat.at)
		}
		return sum
	}
	before := cost()
	for i := range list {
		if list[i].here && !kept[i] {
			p.leave(list[i].seat)
		}
	}
	done := true
	for i := range list {
		if k := &list[i]; kept[i] && !k.here {
			p.leave(k.seat) // noted, so that it can be undone
			done = done && p.take(k.seat, k.to, k.seat.shape, k.seat.alt)
		}
	}
	for i := range list {
		k := &list[i]
		if !k.here || kept[i] || !done {
			continue
		}
		x := search{repairs: p}
		p.refresh(k.seat.shape)
		if away := x.free(k.seat.shape); away != nil {
			done = p.take(k.seat, away, k.seat.shape, k.seat.alt)
		} else {
			done = k.seat.droppable()
		}
	}
	if !done || cost() >= before {
		p.undo(from)
		return false
	}
	return true
}
