package planner

import (
	"cmp"
	"slices"
)

// What is left after chains and rebuilt offers are knots: many seats on a few
// offers that must all change at once. They are untied by ruin and recreate
// (Schrimpf, Schneider, Stamm-Wilbrandt, Dueck: Record breaking optimization
// results using the ruin and recreate principle, 2000): a few offers are
// emptied, those who sat there choose again in some order, and the result is
// gone on with when it is not much dearer than the cheapest yet (record to
// record). All of that happens on plain numbers; what came of it is booked at
// the end, whole or not at all. The choices are drawn from a fixed sequence of
// numbers: equal batches are repaired alike.

const (
	// ruinsPerSeat and maxRuins are how often a batch is ruined in each turn.
	ruinsPerSeat, maxRuins = 300, 50_000
	// maxRuined is how many seats lose their places at once, at most.
	maxRuined = 24
	// nearEnough is how far above what is known to be the least a batch may cost
	// for this to be spared.
	nearEnough = 0.0002
)

// forgiven is how much dearer than the cheapest yet a result may be at the
// start of each turn, in parts of what a seat costs on average; at its end
// nothing. No one figure is the best for all batches that were measured.
var forgiven = [...]float64{0.4, 0.1, 0.02}

// ruinPlace is where a seat could be.
type ruinPlace struct {
	cand  *candidate
	row   int32
	price micro
}

// ruinKind is what seats of one shape have in common.
type ruinKind struct {
	shape *shape
	// places, the cheapest first, and byShadow the same by shadow price.
	places, byShadow []ruinPlace
}

// ruinSeat is one seat; to is where it is now, cand nil for nowhere.
type ruinSeat struct {
	seat *seat
	kind *ruinKind
	to   ruinPlace
}

// ruins is a batch as numbers.
type ruins struct {
	*repairs
	seats []ruinSeat
	rooms []vec
	// on are the seats on each row.
	on    [][]int32
	cost  micro
	state uint64
	// out are those who have lost their place, was where they had it.
	out []int32
	was []ruinPlace
}

// recreate looks for a cheaper whole, and reports whether it found one. What
// limits money is asked when the result is booked: where it forbids that, only
// those without limits are tried.
func (p *repairs) recreate(without []*job) bool {
	if len(p.seats) < 2 || p.looks <= 0 {
		return false
	}
	seats := p.seats
	p.seats = append(slices.Clip(seats), p.extras(without)...)
	defer func() { p.settled(len(seats)) }()
	s := p.shadowPrices()
	for _, limited := range [...]bool{true, false} {
		x := p.ruinsOf(s, limited)
		if float64(x.cost) <= s.bound*(1+nearEnough) {
			return false
		}
		found := false
		for _, part := range forgiven {
			found = x.search(part) || found
		}
		if !found {
			return false
		}
		if x.book() {
			return true
		}
	}
	return false
}

// ruinsOf makes a batch ready. Offers whose room is no plain sum (cards sold in
// parts, pools, what is sold too much) are left as they are.
func (p *repairs) ruinsOf(s *shadows, limited bool) *ruins {
	x := &ruins{repairs: p, state: 1}
	rows := map[*offer]int32{}
	kinds := map[*shape]*ruinKind{}
	rowOf := func(o *offer) int32 {
		at, known := rows[o]
		if !known {
			at = -1
			if o.deck == nil && len(o.mates) == 0 && o.overdrawn() < 0 {
				at = int32(len(x.rooms))
				x.rooms, x.on = append(x.rooms, o.free.clone()), append(x.on, nil)
			}
			rows[o] = at
		}
		return at
	}
	for _, t := range p.seats {
		if t.bound() || !limited && t.job.purse.limited || t.at != nil && rowOf(t.at.offer) < 0 {
			x.cost += priceOf(t.shape, t.at)
			continue
		}
		k := kinds[t.shape]
		if k == nil {
			k = &ruinKind{shape: t.shape}
			kinds[t.shape] = k
			places := func(list []int32) (out []ruinPlace) {
				for _, i := range list {
					if c := &t.shape.cands[i]; !c.vague && c.money == "" && rowOf(c.offer) >= 0 {
						out = append(out, ruinPlace{c, rows[c.offer], c.quote.current()})
					}
				}
				return out
			}
			k.places, k.byShadow = places(t.shape.byPrice()), places(s.of[t.shape].ranked)
		}
		to := ruinPlace{price: priceOf(t.shape, t.at), row: -1}
		if t.at != nil {
			to.cand, to.row = t.at, rows[t.at.offer]
			x.on[to.row] = append(x.on[to.row], int32(len(x.seats)))
		}
		x.cost += to.price
		x.seats = append(x.seats, ruinSeat{t, k, to})
	}
	return x
}

// draw is a number below n (SplitMix64, of Steele, Lea and Flood).
func (x *ruins) draw(n int) int {
	x.state += 0x9e3779b97f4a7c15
	z := x.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) >> 33 % uint64(n)) //nolint:gosec // below n
}

// search goes on from result to result and ends with the cheapest; it reports
// whether that is cheaper than the start.
func (x *ruins) search(part float64) bool {
	if len(x.seats) == 0 {
		return false
	}
	first, best := x.cost, x.cost
	kept := make([]ruinPlace, len(x.seats))
	keep := func() {
		for i := range x.seats {
			kept[i] = x.seats[i].to
		}
	}
	keep()
	times := min(len(x.seats)*ruinsPerSeat, maxRuins)
	most, dirty := micro(part*float64(x.mean())), false
	for n := 0; n < times && x.looks > 0; n++ {
		before := x.cost
		x.ruin()
		allowed := best + most*micro(times-n)/micro(times)
		if !x.fillUp() || x.cost > allowed && x.cost >= before {
			x.restore()
			x.cost = before
			continue
		}
		if x.cost < best {
			best, dirty = x.cost, true
		} else if dirty {
			// The cheapest yet is left: it is what this ruin started from.
			x.swap()
			keep()
			x.swap()
			dirty = false
		}
	}
	if dirty {
		keep()
	}
	for i := range x.seats {
		if at := int32(i); x.seats[i].to != kept[i] { //nolint:gosec // their number
			x.vacate(at)
		}
	}
	for i := range x.seats {
		if at := int32(i); x.seats[i].to != kept[i] { //nolint:gosec // their number
			x.seated(at, kept[i])
		}
	}
	return best < first
}

// mean is what a seat that has a place costs on average.
func (x *ruins) mean() micro {
	var sum, n micro
	for i := range x.seats {
		if s := &x.seats[i]; s.to.cand != nil {
			sum, n = sum+s.to.price, n+1
		}
	}
	return sum / max(n, 1)
}

// swap exchanges the places of those who were out with those they had.
func (x *ruins) swap() {
	for n, i := range x.out {
		x.seats[i].to, x.was[n] = x.was[n], x.seats[i].to
	}
}

// ruin empties the offer of some seat and of some that it would rather have,
// or as soon.
func (x *ruins) ruin() {
	x.out, x.was = x.out[:0], x.was[:0]
	at := int32(x.draw(len(x.seats))) //nolint:gosec // below their number
	s := &x.seats[at]
	x.eject(at)
	if s.to.row >= 0 {
		x.empty(s.to.row)
	}
	last := 0
	for last < len(s.kind.places) && s.kind.places[last].price <= x.was[0].price {
		last++
	}
	for range 1 + x.draw(4) {
		if n := min(last+4, len(s.kind.places)); n > 0 {
			x.empty(s.kind.places[x.draw(n)].row)
		}
	}
	for _, i := range x.out {
		x.vacate(i)
	}
}

// empty marks those on a row, or as many of them as may still be out.
func (x *ruins) empty(row int32) {
	on := x.on[row]
	if len(on) == 0 {
		return
	}
	for n, from := 0, x.draw(len(on)); n < len(on) && len(x.out) < maxRuined; n++ {
		x.eject(on[(from+n)%len(on)])
	}
}

func (x *ruins) eject(i int32) {
	if !slices.Contains(x.out, i) {
		x.out, x.was = append(x.out, i), append(x.was, x.seats[i].to)
	}
}

// vacate takes a seat from its place, seated puts it into one.
func (x *ruins) vacate(i int32) {
	s := &x.seats[i]
	x.cost -= s.to.price
	if at := s.to.row; at >= 0 {
		x.rooms[at] = x.rooms[at].add(s.to.cand.size)
		n := slices.Index(x.on[at], i)
		x.on[at] = slices.Delete(x.on[at], n, n+1)
	}
	s.to = ruinPlace{row: -1}
}

func (x *ruins) seated(i int32, to ruinPlace) {
	s := &x.seats[i]
	s.to = to
	x.cost += to.price
	if to.row >= 0 {
		x.rooms[to.row] = x.rooms[to.row].sub(to.cand.size)
		x.on[to.row] = append(x.on[to.row], i)
	}
}

// restore puts all who were out back to where they had been.
func (x *ruins) restore() {
	for _, i := range x.out {
		x.vacate(i)
	}
	for n, i := range x.out {
		x.seated(i, x.was[n])
	}
}

// fillUp has those who are out choose again, and reports whether nobody is
// left without a place who must have one.
func (x *ruins) fillUp() bool {
	shadow, blind := x.draw(2) == 0, 4+x.draw(24)
	order := slices.Clone(x.out)
	x.inOrder(order)
	for _, i := range order {
		s := &x.seats[i]
		places := s.kind.places
		if shadow {
			places = s.kind.byShadow
		}
		to := ruinPlace{row: -1, price: penalty(s.kind.shape)}
		x.looks--
		for _, pl := range places {
			// Now and then a place is overlooked, for somebody after this one.
			if pl.cand.size.within(x.rooms[pl.row]) && x.draw(blind) > 0 {
				to = pl
				break
			}
		}
		if to.cand == nil && !s.seat.droppable() {
			return false
		}
		x.seated(i, to)
	}
	return true
}

// inOrder puts those who choose in some order: by chance, the biggest first,
// or those with the fewest places first.
func (x *ruins) inOrder(list []int32) {
	for n := len(list) - 1; n > 0; n-- {
		m := x.draw(n + 1)
		list[n], list[m] = list[m], list[n]
	}
	switch x.draw(4) {
	case 0, 2:
	case 1:
		slices.SortStableFunc(list, func(a, b int32) int {
			return cmp.Compare(len(x.seats[a].kind.places), len(x.seats[b].kind.places))
		})
	default:
		slices.SortStableFunc(list, func(a, b int32) int {
			v, w := x.seats[a].kind.shape.wish, x.seats[b].kind.shape.wish
			return cmp.Or(cmp.Compare(w.wanted(), v.wanted()), cmp.Compare(w.need.at(rCPU), v.need.at(rCPU)))
		})
	}
}

// book makes the seats sit where the search put them, or nobody.
func (x *ruins) book() bool {
	m := chain{}
	for i := range x.seats {
		if s := &x.seats[i]; s.to.cand != s.seat.at {
			m.steps = append(m.steps, step{s.seat, s.to.cand})
		}
	}
	return len(m.steps) > 0 && x.move(&m, m.steps[0].seat.shape, m.steps[0].seat.alt)
}
