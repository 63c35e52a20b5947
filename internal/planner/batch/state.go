package batch

import (
	"math/bits"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// ruins is the work on a problem.
type ruins struct {
	*Problem
	n     int
	looks int
	seats []state
	orders
	ofKinds
	// prices are those of the seats that came with a place.
	prices average
	// groups are the seats of each; shared is the domain that each is in, with how many
	// of it, where it shares one.
	groups [][]int32
	shared []shared
	ruled  []ruled
	units
	divided
	// rooms are what is free, n numbers a row; cards likewise, row by row.
	rooms []int64
	cards [][]int64
	accounts
	// on are the seats on each row, idle those without a place and place by seat
	// where there.
	on    [][]int32
	idle  []int32
	place []int32
	// cost is what all come to.
	cost quantity.Micro
	weighing
	rand uint64
	lost
}

// ofKinds is what is known of each kind.
type ofKinds struct {
	// least is what one comes to at least, fewest are the units that it takes, atLeast what it is
	// charged; alike is what it takes wherever it is, nil where that differs.
	least          []quantity.Micro
	fewest         []int64
	atLeast, alike [][]int64
	// placeOn are places by kind and row, nil where there are too many.
	placeOn []int32
}

// accounts are what tenants have left.
type accounts struct {
	left [][]int64
	// bounded are those that may come to an end (bounded.go), charged the seats of each of them,
	// short the one for which a ruin ejects others.
	bounded []bool
	charged [][]int32
	short   int32
}

// lost is who loses a place in a ruin.
type lost struct {
	// out are those who have lost their place, was where they had it, turn is
	// the order in which they choose.
	out, turn []int32
	was       []state
	// most is how many may be out, at most mostOut, emptied the rows that were emptied, ejected by seat the turn
	// in which it lost its place for the last time.
	most    int
	mostOut int
	emptied []int32
	ejected []int
	// firstIdle is that one in so many ruins begins with a seat that has no place.
	firstIdle int
	// regrets: a ruin begins more often with a seat that might cost less.
	regrets bool
}

// divided is what is kept of seats that may be in parts.
type divided struct {
	division division
	forParts []kindInParts
	// moves are how often somebody came to a row or left it, from 1 on.
	moves []int64
	// inParts are the seats that are in parts; freed are the turns in which somebody left a
	// row, nil where none can be in parts, vacated the rows that were left in this turn.
	inParts []int32
	freed   []int
	vacated []int32
	turns   int
}

// begin is a problem as it was given.
func (p *Problem) begin(ranked, rankedParts [][]int32, looks int) *ruins {
	x := &ruins{Problem: p, n: len(p.Pooled), looks: looks, orders: p.orders(ranked), divided: divided{forParts: p.kindsInParts(rankedParts), moves: make([]int64, len(p.Rows))}, cost: p.cost(), rand: 1,
		seats: make([]state, len(p.Seats)), lost: lost{ejected: make([]int, len(p.Seats)), firstIdle: firstIdle}, place: make([]int32, len(p.Seats)), cards: make([][]int64, len(p.Rows)), on: make([][]int32, len(p.Rows))}
	for i := range p.Rows {
		x.rooms = append(x.rooms, p.Rows[i].Free...)
		x.cards[i], x.moves[i] = slices.Clone(p.Rows[i].Cards), 1
	}
	for i := range p.Accounts {
		x.left = append(x.left, slices.Clone(p.Accounts[i]))
	}
	x.bounded, x.charged = p.mayEnd(), make([][]int32, len(p.Accounts))
	for i := range p.Kinds {
		x.fewest, x.atLeast = append(x.fewest, p.fewestOf(&p.Kinds[i])), append(x.atLeast, p.cheapest(&p.Kinds[i]))
		x.alike = append(x.alike, p.alikeOf(&p.Kinds[i]))
		if x.least = append(x.least, p.Kinds[i].least()); p.Kinds[i].Split != nil && x.freed == nil {
			x.freed = make([]int, len(p.Rows))
		}
	}
	x.placeOn = p.placesOn()
	x.units = units{by: map[within]places{}}
	x.beginRules()
	for i := range p.Seats {
		s := &p.Seats[i]
		x.seats[i] = s.state()
		if a := s.Account; a >= 0 && x.bounded[a] {
			x.charged[a] = append(x.charged[a], int32(i)) //nolint:gosec // their number
		}
		if x.place[i] = -1; s.At == Nowhere {
			x.place[i] = int32(len(x.idle))   //nolint:gosec // their number
			x.idle = append(x.idle, int32(i)) //nolint:gosec // their number
		}
		if s.At == InParts {
			sp := p.Kinds[s.Kind].Split
			for _, part := range s.Parts {
				row := sp.Rows[part.Row].Row
				x.on[row] = append(x.on[row], int32(i)) //nolint:gosec // their number
			}
			x.inParts = append(x.inParts, int32(i)) //nolint:gosec // their number
			x.prices.add(sp.price(s.Parts))
		}
		if s.At >= 0 {
			pl := p.Kinds[s.Kind].Places[s.At]
			x.on[pl.Row] = append(x.on[pl.Row], int32(i)) //nolint:gosec // their number
			x.prices.add(pl.Price)
		}
		for s.Group >= int32(len(x.groups)) { //nolint:gosec // their number
			x.groups, x.shared = append(x.groups, nil), append(x.shared, shared{})
		}
		if s.At >= 0 {
			x.join(s, &p.Kinds[s.Kind].Places[s.At], 1)
		}
		if s.Group >= 0 {
			x.groups[s.Group] = append(x.groups[s.Group], int32(i)) //nolint:gosec // their number
		}
	}
	x.found = make([][]candidate, len(x.groups))
	return x
}

// average is that of a sum.
type average struct{ sum, count quantity.Micro }

func (a *average) add(n quantity.Micro) { a.sum, a.count = a.sum+n, a.count+1 }

// part is so many thousandths of the average, times n of most: rounded once, so
// that it follows the scale of prices.
func (a *average) part(thousandths int64, n, most int) quantity.Micro {
	high, low := bits.Mul64(uint64(max(a.sum, 0)), uint64(thousandths)*uint64(n))       //nolint:gosec // none is below 0
	part, _ := bits.Div64(high, low, uint64(max(a.count, 1))*1000*uint64(max(most, 1))) //nolint:gosec // above 0
	return quantity.Micro(part)                                                         //nolint:gosec // no more than the sum
}

// draw is a number below n (SplitMix64, of Steele, Lea and Flood).
func (x *ruins) draw(n int) int {
	x.rand += 0x9e3779b97f4a7c15
	z := x.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) >> 33 % uint64(n)) //nolint:gosec // below n
}

// vacate takes a seat from its place, seated puts it into one.
func (x *ruins) vacate(i int32) {
	s, kind := &x.seats[i], x.Seats[i].Kind
	k := &x.Kinds[kind]
	if s.at == InParts {
		x.eachPart(i, s.parts(), -1)
		*s = state{at: Nowhere}
		return
	}
	if s.at < 0 {
		x.cost -= k.Nowhere
		last := x.idle[len(x.idle)-1]
		x.idle[x.place[i]], x.place[last] = last, x.place[i]
		x.idle, x.place[i] = x.idle[:len(x.idle)-1], -1
		return
	}
	pl := &k.Places[s.at]
	more := x.weight(&x.Seats[i], pl.Price)
	x.cost, x.extra = x.cost-pl.Price-more, x.extra-more
	x.take(pl.Row, takes(x, kind, s.at), -1)
	x.charge(i, k, s.at, -1)
	x.join(&x.Seats[i], pl, -1)
	for _, u := range s.on() {
		x.cards[pl.Row][u.Card] += u.N
	}
	x.on[pl.Row] = without(x.on[pl.Row], i)
	x.free(pl.Row)
	*s = state{at: Nowhere}
}

func (x *ruins) seated(i int32, to state) {
	s, kind, at := &x.seats[i], x.Seats[i].Kind, to.at
	k := &x.Kinds[kind]
	*s = to
	if at == InParts {
		x.eachPart(i, to.parts(), 1)
		return
	}
	if at < 0 {
		x.cost += k.Nowhere
		x.place[i] = int32(len(x.idle)) //nolint:gosec // their number
		x.idle = append(x.idle, i)
		return
	}
	pl := &k.Places[at]
	more := x.weight(&x.Seats[i], pl.Price)
	x.cost, x.extra = x.cost+pl.Price+more, x.extra+more
	x.take(pl.Row, takes(x, kind, at), 1)
	x.charge(i, k, at, 1)
	x.join(&x.Seats[i], pl, 1)
	for _, u := range to.on() {
		x.cards[pl.Row][u.Card] -= u.N
	}
	x.on[pl.Row] = append(x.on[pl.Row], i)
}

// isOut reports whether a seat has lost its place and not yet chosen.
func (x *ruins) isOut(i int32) bool { return x.seats[i].at == Nowhere && x.place[i] < 0 }

// takes is what one of a kind takes in a place.
func takes(x *ruins, kind, at int32) []int64 {
	if size := x.alike[kind]; size != nil {
		return size
	}
	return x.size(&x.Kinds[kind], at)
}

// take takes a size from a row and its mates, or (-1) gives it back.
func (x *ruins) take(row int32, size []int64, sign int64) {
	room := x.room(row)
	for r, n := range size {
		room[r] -= sign * n
	}
	x.moves[row]++
	for _, mate := range x.Rows[row].Mates {
		x.moves[mate]++
		room := x.room(mate)
		for r, n := range size {
			if x.Pooled[r] {
				room[r] -= sign * n
			}
		}
	}
}

// shares reports whether a seat's group shares a domain.
func (x *ruins) shares(s *Seat) bool { return len(x.Domains) > 0 && s.Shares >= 0 && s.Group >= 0 }

// join notes that a seat takes a place, or (-1) leaves it.
func (x *ruins) join(s *Seat, pl *Place, n int) {
	if x.shares(s) {
		g := &x.shared[s.Group]
		g.domain = x.Domains[s.Shares][pl.Row]
		g.seats += n
	}
	x.count(s, pl, int32(n)) //nolint:gosec // 1 or -1
}

// apart reports whether a row is in no domain, or in another than the seat's group.
func (x *ruins) apart(s *Seat, row int32) bool {
	if !x.shares(s) {
		return false
	}
	g, d := &x.shared[s.Group], x.Domains[s.Shares][row]
	return d < 0 || g.seats > 0 && g.domain != d
}

// charge takes what a seat costs in a place from its account, or (-1) gives it back.
func (x *ruins) charge(i int32, k *Kind, at int32, sign int64) {
	if a := x.Seats[i].Account; a >= 0 && x.bounded[a] {
		for n, c := range x.charges(k, at) {
			x.left[a][n] -= sign * c
		}
	}
}

// affords reports whether a seat's account has what it costs in a place.
func (x *ruins) affords(i int32, k *Kind, at int32) bool {
	a := x.Seats[i].Account
	return a < 0 || !x.bounded[a] || !exceeds(x.charges(k, at), x.left[a])
}

// room is what is free on a row.
func (x *ruins) room(row int32) []int64 { return x.rooms[int(row)*x.n:][:x.n:x.n] }

// put lays a seat's units and seats it.
func (x *ruins) put(i, at int32) {
	if at < 0 {
		x.seated(i, state{at: Nowhere})
		return
	}
	k := &x.Kinds[x.Seats[i].Kind]
	pl := &k.Places[at]
	to := state{at: at}
	if cards := x.cards[pl.Row]; cards != nil {
		if on := x.Rows[pl.Row].lay(cards, x.size(k, at)[0], pl.Loose); len(on) > 0 {
			to.lie = &lie{on: on}
		}
		for _, u := range to.on() {
			cards[u.Card] += u.N // seated takes them
		}
	}
	x.seated(i, to)
}

// choose is the first place that has room, of some. Now and then one is overlooked, for
// somebody who comes later.
func (x *ruins) choose(seat int32, among order, blind int) int32 {
	s := &x.Seats[seat]
	k, list, looked := &x.Kinds[s.Kind], among.rooms, 0
	x.looks -= 1 + len(list)/placesALook
	x.consider(s)
	rooms, fewest, size := x.rooms, x.fewest[s.Kind], x.alike[s.Kind]
	alike := size != nil
	bounded := s.Account >= 0 && x.bounded[s.Account]
	if bounded && exceeds(x.atLeast[s.Kind], x.left[s.Account]) {
		return Nowhere
	}
next:
	for ; looked < len(list); looked++ {
		from := int(list[looked])
		if rooms[from] < fewest {
			continue
		}
		if !alike {
			size = x.size(k, among.place(looked))
		}
		for r, free := range rooms[from:][:len(size)] {
			if size[r] > free {
				continue next
			}
		}
		at := among.place(looked)
		pl := &k.Places[at]
		if x.apart(s, pl.Row) || x.breaks(s, pl) {
			continue
		}
		if cards := x.cards[pl.Row]; cards != nil && !x.Rows[pl.Row].hosts(cards, size[0], pl.Loose) {
			continue
		}
		if bounded && exceeds(x.charges(k, at), x.left[s.Account]) {
			continue
		}
		if x.draw(blind) > 0 {
			x.looks += len(list)/placesALook - looked/placesALook
			return at
		}
	}
	return Nowhere
}

// eachPart seats the parts of a seat, or (-1) takes them from their rows.
func (x *ruins) eachPart(i int32, parts []Part, sign int64) {
	s, sp := &x.Seats[i], x.Kinds[x.Seats[i].Kind].Split
	for n := range parts {
		part := &parts[n]
		row, deal := sp.Rows[part.Row].Row, sp.deal(part.Row)
		price := deal.Prices[part.Units]
		more := x.weight(s, price)
		x.cost, x.extra = x.cost+quantity.Micro(sign)*(price+more), x.extra+quantity.Micro(sign)*more
		x.take(row, deal.size(part.Units, x.n), sign)
		if s.Account >= 0 && x.bounded[s.Account] {
			left := x.left[s.Account]
			for c, charge := range deal.charges(part.Units, len(left)) {
				left[c] -= sign * charge
			}
		}
		for _, u := range part.On {
			x.cards[row][u.Card] -= sign * u.N
		}
		if sign > 0 {
			x.on[row] = append(x.on[row], i)
		} else {
			x.on[row] = without(x.on[row], i)
			x.free(row)
		}
	}
	if sign > 0 {
		x.inParts = append(x.inParts, i)
	} else {
		x.inParts = without(x.inParts, i)
	}
}

// without is a list without one of its seats.
func without(list []int32, i int32) []int32 {
	n := slices.Index(list, i)
	list[n] = list[len(list)-1]
	return list[:len(list)-1]
}

// free notes that somebody leaves a row, where seats may be in parts.
func (x *ruins) free(row int32) {
	if x.freed == nil || x.freed[row] == x.turns {
		return
	}
	x.freed[row], x.vacated = x.turns, append(x.vacated, row)
	for _, mate := range x.Rows[row].Mates {
		x.free(mate)
	}
}
