package planner

import (
	"cmp"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
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
	ruinsPerSeat, maxRuins = 1_000, 50_000
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

// ruinPlace is where a seat could be; cand is nil for nowhere.
type ruinPlace struct {
	cand  *candidate
	row   int32
	price quantity.Micro
}

// ruinPlaces are where seats of one shape could be, in some order, and what one
// takes there: as many numbers a place as resources count.
type ruinPlaces struct {
	list  []ruinPlace
	sizes []int64
}

// ruinKind is what seats of one shape have in common.
type ruinKind struct {
	shape *shape
	// places, the cheapest first, and byShadow the same by shadow price.
	places, byShadow ruinPlaces
	// least is the cheapest place, or what being nowhere counts for.
	least, nowhere quantity.Micro
}

// ruinSeat is one seat, and where it is now.
type ruinSeat struct {
	seat *seat
	kind *ruinKind
	to   ruinPlace
	// size is what it takes there.
	size []int64
}

// ruins is a batch as numbers.
type ruins struct {
	*repairs
	seats []ruinSeat
	// counts are the resources that anybody asks for, rooms what is free of them
	// on each row.
	counts []int
	rooms  []int64
	offers []*offer
	// on are the seats on each row.
	on    [][]int32
	cost  quantity.Micro
	state uint64
	// out are those who have lost their place, was where they had it, turn is
	// the order in which they choose.
	out, turn []int32
	was       []ruinSeat
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
	rowOf := func(o *offer) int32 {
		at, known := rows[o]
		if !known {
			at = -1
			if o.deck == nil && len(o.mates) == 0 && o.overdrawn() < 0 {
				at = int32(len(x.offers))
				x.offers, x.on = append(x.offers, o), append(x.on, nil)
			}
			rows[o] = at
		}
		return at
	}
	kinds := map[*shape]*ruinKind{}
	for _, t := range p.seats {
		if t.bound() || !limited && t.job.purse.limited || t.at != nil && rowOf(t.at.offer) < 0 {
			x.cost += priceOf(t.shape, t.at)
			continue
		}
		k := kinds[t.shape]
		if k == nil {
			k = &ruinKind{shape: t.shape, nowhere: penalty(t.shape)}
			kinds[t.shape] = k
			places := func(list []int32) (out ruinPlaces) {
				for _, i := range list {
					if c := &t.shape.cands[i]; !c.vague && c.money == "" && rowOf(c.offer) >= 0 {
						out.list = append(out.list, ruinPlace{c, rows[c.offer], c.quote.current()})
						x.count(c.size)
					}
				}
				return out
			}
			k.places, k.byShadow = places(t.shape.byPrice()), places(s.of[t.shape].ranked)
			if k.least = k.nowhere; len(k.places.list) > 0 {
				k.least = min(k.least, k.places.list[0].price)
			}
		}
		to := ruinPlace{price: priceOf(t.shape, t.at), row: -1}
		if t.at != nil {
			to.cand, to.row = t.at, rows[t.at.offer]
			x.on[to.row] = append(x.on[to.row], int32(len(x.seats)))
			x.count(t.at.size)
		}
		x.cost += to.price
		x.seats = append(x.seats, ruinSeat{seat: t, kind: k, to: to})
	}
	x.measure(kinds)
	return x
}

// count notes which resources count.
func (x *ruins) count(size quantity.Vector) {
	for i, n := range size {
		if n > 0 && !slices.Contains(x.counts, i) {
			x.counts = append(x.counts, i)
		}
	}
}

// measure writes down rooms and sizes, cards first: they are what is most often
// missing.
func (x *ruins) measure(kinds map[*shape]*ruinKind) {
	if cards := slices.Index(x.counts, quantity.GPU); cards > 0 {
		x.counts[0], x.counts[cards] = x.counts[cards], x.counts[0]
	}
	numbers := func(out []int64, v quantity.Vector) []int64 {
		for _, i := range x.counts {
			out = append(out, v.At(i))
		}
		return out
	}
	for _, o := range x.offers {
		x.rooms = numbers(x.rooms, o.free)
	}
	for _, k := range kinds {
		for _, places := range [...]*ruinPlaces{&k.places, &k.byShadow} {
			for i := range places.list {
				places.sizes = numbers(places.sizes, places.list[i].cand.size)
			}
		}
	}
	for i := range x.seats {
		if s := &x.seats[i]; s.to.cand != nil {
			s.size = numbers(nil, s.to.cand.size)
		}
	}
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
	kept := slices.Clone(x.seats)
	times := min(len(x.seats)*ruinsPerSeat, maxRuins)
	most, dirty := quantity.Micro(part*float64(x.mean())), false
	for n := 0; n < times && x.looks > 0; n++ {
		before := x.cost
		x.ruin()
		allowed := best + most*quantity.Micro(times-n)/quantity.Micro(times)
		if !x.fillUp(max(allowed, before-1)) {
			x.restore()
			x.cost = before
			continue
		}
		if x.cost < best {
			best, dirty = x.cost, true
		} else if dirty {
			// The cheapest yet is left: it is what this ruin started from.
			x.swap()
			copy(kept, x.seats)
			x.swap()
			dirty = false
		}
	}
	if dirty {
		copy(kept, x.seats)
	}
	for i := range x.seats {
		if at := int32(i); x.seats[i].to != kept[i].to { //nolint:gosec // their number
			x.vacate(at)
		}
	}
	for i := range x.seats {
		if at := int32(i); x.seats[i].to != kept[i].to { //nolint:gosec // their number
			x.seated(at, kept[i].to, kept[i].size)
		}
	}
	return best < first
}

// mean is what a seat that has a place costs on average.
func (x *ruins) mean() quantity.Micro {
	var sum, n quantity.Micro
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
		x.seats[i], x.was[n] = x.was[n], x.seats[i]
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
	places := s.kind.places.list
	for last < len(places) && places[last].price <= x.was[0].to.price {
		last++
	}
	for range 1 + x.draw(4) {
		if n := min(last+4, len(places)); n > 0 {
			x.empty(places[x.draw(n)].row)
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
		x.out, x.was = append(x.out, i), append(x.was, x.seats[i])
	}
}

// vacate takes a seat from its place, seated puts it into one.
func (x *ruins) vacate(i int32) {
	s := &x.seats[i]
	x.cost -= s.to.price
	if at := s.to.row; at >= 0 {
		for n, room := range x.room(at) {
			x.room(at)[n] = room + s.size[n]
		}
		on := x.on[at]
		n := slices.Index(on, i)
		on[n] = on[len(on)-1]
		x.on[at] = on[:len(on)-1]
	}
	s.to = ruinPlace{row: -1}
}

func (x *ruins) seated(i int32, to ruinPlace, size []int64) {
	s := &x.seats[i]
	s.to, s.size = to, size
	x.cost += to.price
	if to.row >= 0 {
		for n, room := range x.room(to.row) {
			x.room(to.row)[n] = room - size[n]
		}
		x.on[to.row] = append(x.on[to.row], i)
	}
}

// room is what is free on a row.
func (x *ruins) room(row int32) []int64 {
	n := len(x.counts)
	return x.rooms[int(row)*n:][:n:n]
}

// restore puts all who were out back to where they had been.
func (x *ruins) restore() {
	for _, i := range x.out {
		x.vacate(i)
	}
	for n, i := range x.out {
		x.seated(i, x.was[n].to, x.was[n].size)
	}
}

// fillUp has those who are out choose again, and reports whether nobody is
// left without a place who must have one, and all cost no more than allowed. It
// stops as soon as they would cost more even if the rest had the best places.
func (x *ruins) fillUp(allowed quantity.Micro) bool {
	shadow, blind := x.draw(2) == 0, 4+x.draw(24)
	x.inOrder()
	rest := quantity.Micro(0)
	for _, i := range x.turn {
		rest += x.seats[i].kind.least
	}
	for _, i := range x.turn {
		s := &x.seats[i]
		rest -= s.kind.least
		places := &s.kind.places
		if shadow {
			places = &s.kind.byShadow
		}
		to, size := x.choose(places, blind)
		if to.cand == nil {
			if to.price = s.kind.nowhere; !s.seat.droppable() {
				return false
			}
		}
		x.seated(i, to, size)
		if x.cost+rest > allowed {
			return false
		}
	}
	return true
}

// choose is the first place that has room. Now and then one is overlooked, for
// somebody who comes later.
func (x *ruins) choose(places *ruinPlaces, blind int) (ruinPlace, []int64) {
	n, at := len(x.counts), 0
	defer func() { x.looks -= 1 + at/placesALook }()
next:
	for ; at < len(places.list); at++ {
		pl := &places.list[at]
		size, room := places.sizes[at*n:][:n:n], x.rooms[int(pl.row)*n:][:n:n]
		for k, takes := range size {
			if takes > room[k] {
				continue next
			}
		}
		if x.draw(blind) > 0 {
			return *pl, size
		}
	}
	return ruinPlace{row: -1}, nil
}

// inOrder puts those who choose in some order: by chance, the biggest first,
// or those with the fewest places first.
func (x *ruins) inOrder() {
	x.turn = append(x.turn[:0], x.out...)
	list := x.turn
	for n := len(list) - 1; n > 0; n-- {
		m := x.draw(n + 1)
		list[n], list[m] = list[m], list[n]
	}
	switch x.draw(4) {
	case 0, 2:
	case 1:
		slices.SortStableFunc(list, func(a, b int32) int {
			return cmp.Compare(len(x.seats[a].kind.places.list), len(x.seats[b].kind.places.list))
		})
	default:
		slices.SortStableFunc(list, func(a, b int32) int {
			v, w := x.seats[a].kind.shape.wish, x.seats[b].kind.shape.wish
			return cmp.Or(cmp.Compare(w.wanted(), v.wanted()), cmp.Compare(w.need.At(quantity.CPU), v.need.At(quantity.CPU)))
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
