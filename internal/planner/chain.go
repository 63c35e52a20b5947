package planner

import (
	"cmp"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"slices"
)

const (
	// maxChain is how many seats at most make way one after the other: what two
	// would win, recreate.go finds sooner.
	maxChain = 1
	// maxWidth is how many full places a seat looks into: the cheapest ones.
	maxWidth = 64
)

// chain is a change that costs less in all: seats in the order in which they
// take their new places. The first is who gains, each other one was in the way.
type chain struct {
	steps []step
	gain  quantity.Micro
}

// step is one seat's new place; to is nil when it loses the one it has.
type step struct {
	seat *seat
	to   *candidate
}

// search looks for the best chain for one seat.
type search struct {
	*repairs
	// freed is the offer that the first seat leaves, with what it leaves there.
	freed *offer
	back  quantity.Vector
	// used are the offers that the chain already changes.
	used  []*offer
	seats []*seat
}

// better is the best change for a seat that costs now (or for one that has no
// place): a cheaper place that is free, or one from which others can go for
// less than is won.
func (p *repairs) better(s *seat, of *shape, now quantity.Micro) chain {
	x := search{repairs: p}
	if s.at != nil {
		x.freed, x.back = s.at.offer, s.at.size
		x.used = append(x.used, s.at.offer)
	}
	return x.find(s, of, now, 0, 0)
}

// find is the cheapest new place for a seat that costs now, when the chain so
// far has won so much; its gain counts what was won, and is 0 when the whole
// chain would win nothing.
func (x *search) find(s *seat, of *shape, now, won quantity.Micro, level int) (best chain) {
	x.refresh(of)
	x.seats = append(x.seats, s)
	defer func() { x.seats = x.seats[:len(x.seats)-1] }()
	take := func(c *candidate, gain quantity.Micro, rest ...step) {
		if gain > best.gain {
			best = chain{append([]step{{s, c}}, rest...), gain}
		}
	}
	if level > 0 && x.freed != nil {
		// What the first seat leaves may be taken, once.
		if c := of.of(x.freed); c != nil && c.money == "" && !x.unpriced(c) && makesRoom(c, x.back) {
			take(c, won+now-c.quote.current())
		}
	}
	if level > 0 && s.droppable() {
		take(nil, won+now-penalty(of))
	}
	if level == maxChain {
		if c := x.free(of); c != nil {
			take(c, won+now-c.quote.current())
		}
		return best
	}
	width := maxWidth
	for _, i := range of.byPrice() {
		c := &of.cands[i]
		gain := won + now - c.quote.current()
		if gain <= best.gain || x.looks <= 0 {
			break
		}
		x.looks--
		switch {
		case x.unpriced(c) || slices.Contains(x.used, c.offer):
		case c.req == "":
			take(c, gain)
		case c.money == "" && width > 0:
			width--
			x.used = append(x.used, c.offer)
			alone := false
			for _, k := range x.on[c.offer] {
				if !slices.Contains(x.seats, k) && makesRoom(c, k.at.size) {
					alone = true
					next := x.find(k, k.shape, k.at.quote.current(), gain, level+1)
					take(c, next.gain, next.steps...)
				}
			}
			if !alone {
				x.clear(c, gain, take)
			}
			x.used = x.used[:len(x.used)-1]
		}
	}
	return best
}

// clear tries to make a place free by sending several elsewhere, those first
// who lose least for what they give back.
func (x *search) clear(c *candidate, gain quantity.Micro, take func(*candidate, quantity.Micro, ...step)) {
	type leaver struct {
		seat *seat
		loss float64
	}
	var list []leaver
	for _, k := range x.on[c.offer] {
		x.refresh(k.shape)
		if away := x.free(k.shape); !slices.Contains(x.seats, k) && (away != nil || k.droppable()) {
			share := 1e-9
			for r, n := range k.at.size {
				if lack := c.size.At(r) - c.offer.free.At(r); lack > 0 && n > 0 {
					share = max(share, min(float64(n)/float64(lack), 1))
				}
			}
			list = append(list, leaver{k, float64(priceOf(k.shape, away)-k.at.quote.current()) / share})
		}
	}
	slices.SortStableFunc(list, func(a, b leaver) int { return cmp.Compare(a.loss, b.loss) })
	was, back := len(x.used), quantity.Vector{}
	var steps []step
	for _, l := range list {
		away := x.free(l.seat.shape)
		if away == nil && !l.seat.droppable() {
			continue
		}
		gain += l.seat.at.quote.current() - priceOf(l.seat.shape, away)
		if gain <= 0 {
			break
		}
		if away != nil {
			x.used = append(x.used, away.offer)
		}
		steps = append(steps, step{l.seat, away})
		if back = back.Add(l.seat.at.size); makesRoom(c, back) {
			take(c, gain, steps...)
			break
		}
	}
	x.used = x.used[:was]
}

func (*search) unpriced(c *candidate) bool { return c.vague }

// free is the cheapest place of a shape that is free and not part of the chain.
func (x *search) free(of *shape) (found *candidate) {
	x.looks--
	of.byRank(true).walk(of.cands, func(c *candidate) bool {
		if !slices.Contains(x.used, c.offer) && !x.unpriced(c) {
			found = c
		}
		return found == nil
	})
	return found
}

// makesRoom reports whether a candidate would fit if so much were given back.
func makesRoom(c *candidate, back quantity.Vector) bool {
	for i, n := range c.offer.free {
		if n+back.At(i) < max(c.size.At(i), 0) {
			return false
		}
	}
	return len(c.size) <= len(c.offer.free) || c.size[len(c.offer.free):].Within(nil)
}

// offersInOrder are the offers that seats are or could be on.
func (p *repairs) offersInOrder() []*offer {
	seen := map[*shape]bool{}
	known := map[*offer]bool{}
	var out []*offer
	for _, s := range p.seats {
		if seen[s.shape] {
			continue
		}
		seen[s.shape] = true
		for _, i := range s.shape.byPrice() {
			if c := &s.shape.cands[i]; !known[c.offer] && !c.vague {
				known[c.offer] = true
				out = append(out, c.offer)
			}
		}
	}
	slices.SortFunc(out, compareOffers)
	return out
}

// guest is a seat that would be better off on an offer.
type guest struct {
	seat    *seat
	to      *candidate
	gain    quantity.Micro
	density float64
}

// refill is the best change of who sits on one offer: one goes elsewhere, and
// those who win most for the room they take come instead. It finds what chains
// do not: that one with many cores keeps several with few from cheap cards.
func (p *repairs) refill(o *offer) (best chain) {
	var guests []guest
	p.looks -= len(p.seats) / 8 // a glance at each
	for _, s := range p.seats {
		if s.bound() || s.at != nil && s.at.offer == o {
			continue
		}
		c, now := s.shape.of(o), priceOf(s.shape, s.at)
		if c == nil || c.money != "" || now <= c.quote.current() || p.looks <= 0 {
			continue
		}
		guests = append(guests, guest{seat: s, to: c, gain: now - c.quote.current()})
	}
	if len(guests) == 0 {
		return best
	}
	rankGuests(guests, o.capacity)
	for _, k := range p.on[o] {
		p.refresh(k.shape)
		room := o.free.Clone().Add(k.at.size)
		gain := k.at.quote.current()
		steps := []step{{k, nil}}
		leaving := map[*offer]quantity.Vector{}
		for i := range guests {
			g := &guests[i]
			if g.to.size.Within(room) {
				room = room.Sub(g.to.size)
				gain += g.gain
				steps = append(steps, step{g.seat, g.to})
				if g.seat.at == nil {
					continue
				}
				leaving[g.seat.at.offer] = leaving[g.seat.at.offer].Clone().Add(g.seat.at.size)
			}
		}
		if away := p.awayFrom(k, o, gain-best.gain, leaving); away != nil {
			steps[0].to = away
			best = chain{steps, gain - away.quote.current()}
		}
	}
	return best
}

// awayFrom is the cheapest other place for a seat that costs less than most: a
// free one, or one that the leaving make free.
func (p *repairs) awayFrom(k *seat, o *offer, most quantity.Micro, leaving map[*offer]quantity.Vector) *candidate {
	for _, i := range k.shape.byPrice() {
		c := &k.shape.cands[i]
		if c.quote.current() >= most {
			break
		}
		p.looks--
		if c.offer == o || c.vague {
			continue
		}
		if back := leaving[c.offer]; c.req == "" || c.money == "" && back != nil && makesRoom(c, back) {
			return c
		}
	}
	return nil
}

// rankGuests puts those first that win most for the scarcest of what they take.
func rankGuests(guests []guest, room quantity.Vector) {
	for i := range guests {
		g := &guests[i]
		share := 0.0
		for r, n := range g.to.size {
			if have := room.At(r); n > 0 && have > 0 {
				share = max(share, float64(n)/float64(have))
			}
		}
		g.density = float64(g.gain) / max(share, 1e-9)
	}
	slices.SortStableFunc(guests, func(a, b guest) int { return cmp.Compare(b.density, a.density) })
}

// move books a chain, or nothing of it.
func (p *repairs) move(m *chain, of *shape, alt int) bool {
	from := len(p.done)
	for _, st := range m.steps {
		p.leave(st.seat)
	}
	for i, st := range m.steps {
		shape, alternative := st.seat.shape, st.seat.alt
		if i == 0 {
			shape, alternative = of, alt
		}
		if st.to != nil && !p.take(st.seat, st.to, shape, alternative) {
			p.undo(from)
			return false
		}
	}
	return true
}
