package batch

import (
	"cmp"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

const (
	// ruinsPerSeat and maxRuins are how often a batch is ruined in each turn.
	ruinsPerSeat, maxRuins = 1_000, 50_000
	// fewestRuined to mostRuined seats lose their places before no more are added:
	// now few, now many.
	fewestRuined, mostRuined = 4, 84
	// seatsARuin is from how many seats on a ruin counts as several.
	seatsARuin = 24
	// maxGroup is the largest group that loses its places for others.
	maxGroup = 24
	// maxIdle is below how many seats without a place choose with those who lost theirs.
	maxIdle = 8
	// nearEnough is how far above what is known to be the least a batch may cost
	// for the search to be spared.
	nearEnough = 0.0002
)

// forgiven is how much more expensive than the cheapest yet a result may be at the
// start of each turn, in parts of what a seat costs on average; at its end
// nothing. No one figure is the best for all batches that were measured.
var forgiven = [...]float64{1, 0.4, 0.2, 0.1, 0.02}

// Answer is where seats are best.
type Answer struct {
	// At are their places, seat by seat; Nowhere for none.
	At []int32
	// On is where their units lie.
	On [][]Units
	// Cheaper: that costs less than what was given; else it is what was given.
	Cheaper bool
	// Looks that are left.
	Looks int
}

// Solve looks for places that cost less in total, with so many looks at places.
func Solve(p *Problem, looks int) Answer {
	out := Answer{Looks: looks, At: make([]int32, len(p.Seats)), On: make([][]Units, len(p.Seats))}
	for i := range p.Seats {
		out.At[i], out.On[i] = p.Seats[i].At, p.Seats[i].On
	}
	if len(p.Seats) < 2 || looks <= 0 {
		return out
	}
	ranked, bound := p.shadowPrices(&out.Looks)
	x := p.begin(ranked, out.Looks)
	if float64(x.cost) <= bound*(1+nearEnough) {
		return out
	}
	for _, part := range forgiven {
		out.Cheaper = x.search(part) || out.Cheaper
	}
	for i := range x.seats {
		out.At[i], out.On[i] = x.seats[i].at, x.seats[i].on
	}
	out.Looks = x.looks
	return out
}

// state is where a seat is now, and where its units lie.
type state struct {
	at int32
	on []Units
}

// ruins is the work on a problem.
type ruins struct {
	*Problem
	n     int
	looks int
	seats []state
	// ranked are the places of each kind by shadow price.
	ranked [][]int32
	least  []quantity.Micro
	mean   quantity.Micro
	// groups are the seats of each; shared is the domain that each is in, with how many
	// of it, where it shares one.
	groups [][]int32
	shared []shared
	ruled  []ruled
	units
	// rooms are what is free, n numbers a row; cards likewise, row by row.
	rooms []int64
	cards [][]int64
	// left is what accounts have.
	left [][]int64
	// on are the seats on each row, idle those without a place and place by seat
	// where there.
	on    [][]int32
	idle  []int32
	place []int32
	cost  quantity.Micro
	rand  uint64
	// out are those who have lost their place, was where they had it, turn is
	// the order in which they choose.
	out, turn []int32
	was       []state
	// most is how many may be out.
	most int
}

// begin is a problem as it was given.
func (p *Problem) begin(ranked [][]int32, looks int) *ruins {
	x := &ruins{Problem: p, n: len(p.Pooled), looks: looks, ranked: ranked, cost: p.cost(), rand: 1,
		seats: make([]state, len(p.Seats)), place: make([]int32, len(p.Seats)), cards: make([][]int64, len(p.Rows)), on: make([][]int32, len(p.Rows))}
	for i := range p.Rows {
		x.rooms = append(x.rooms, p.Rows[i].Free...)
		x.cards[i] = slices.Clone(p.Rows[i].Cards)
	}
	for i := range p.Accounts {
		x.left = append(x.left, slices.Clone(p.Accounts[i]))
	}
	for i := range p.Kinds {
		x.least = append(x.least, p.Kinds[i].least())
	}
	x.units = units{by: map[within]places{}, found: map[int32][]candidate{}}
	x.beginRules()
	count := quantity.Micro(0)
	for i := range p.Seats {
		s := &p.Seats[i]
		x.seats[i] = state{s.At, s.On}
		if x.place[i] = -1; s.At < 0 {
			x.place[i] = int32(len(x.idle))   //nolint:gosec // their number
			x.idle = append(x.idle, int32(i)) //nolint:gosec // their number
		}
		if s.At >= 0 {
			pl := p.Kinds[s.Kind].Places[s.At]
			x.on[pl.Row] = append(x.on[pl.Row], int32(i)) //nolint:gosec // their number
			x.mean, count = x.mean+pl.Price, count+1
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
	x.mean /= max(count, 1)
	return x
}

// draw is a number below n (SplitMix64, of Steele, Lea and Flood).
func (x *ruins) draw(n int) int {
	x.rand += 0x9e3779b97f4a7c15
	z := x.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) >> 33 % uint64(n)) //nolint:gosec // below n
}

// search goes on from result to result and ends with the cheapest; it reports
// whether that is cheaper than the start.
func (x *ruins) search(part float64) bool {
	first, best := x.cost, x.cost
	kept := slices.Clone(x.seats)
	times := min(len(x.seats)*ruinsPerSeat, maxRuins)
	most, dirty := quantity.Micro(part*float64(x.mean)), false
	for n := 0; n < times && x.looks > 0; n += 1 + len(x.out)/seatsARuin {
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
	x.become(kept)
	return best < first
}

// become puts all seats where they once were.
func (x *ruins) become(then []state) {
	var moved []int32
	for i := range x.seats {
		if at := int32(i); x.seats[i].at != then[i].at || !slices.Equal(x.seats[i].on, then[i].on) { //nolint:gosec // their number
			x.vacate(at)
			moved = append(moved, at)
		}
	}
	for _, i := range moved {
		x.seated(i, then[i].at, then[i].on)
	}
}

// swap exchanges the places of those who were out with those they had.
func (x *ruins) swap() {
	for n, i := range x.out {
		x.seats[i], x.was[n] = x.was[n], x.seats[i]
	}
}

// ruin empties the row of some seat and of some that it would rather have, or as
// soon.
func (x *ruins) ruin() {
	x.out, x.was = x.out[:0], x.was[:0]
	x.most = fewestRuined + x.draw(mostRuined-fewestRuined)
	at := int32(x.draw(len(x.seats))) //nolint:gosec // below their number
	s := &x.Seats[at]
	x.eject(at, math.MaxInt)
	if here := x.was[0].at; here >= 0 {
		x.empty(x.Kinds[s.Kind].Places[here].Row)
	}
	for range 1 + x.draw(4) {
		n := 0 // it, or one of those who lost their place for it
		if x.draw(2) == 0 {
			n = x.draw(len(x.out))
		}
		k := &x.Kinds[x.Seats[x.out[n]].Kind]
		if last := min(x.asCheap(k, x.was[n].at)+4, len(k.Places)); last > 0 {
			x.empty(k.Places[x.draw(last)].Row)
		}
	}
	x.clear(s)
	for n := x.draw(maxIdle); n > 0 && len(x.idle) > 0; n-- { // one may give way to several
		x.eject(x.idle[x.draw(len(x.idle))], maxGroup)
	}
	for _, i := range x.out {
		x.vacate(i)
	}
}

// asCheap is how many places of a kind cost no more than one, all where that is none.
func (x *ruins) asCheap(k *Kind, at int32) int {
	price := k.Nowhere
	if at >= 0 {
		price = k.Places[at].Price
	}
	n, _ := slices.BinarySearchFunc(k.Places, price, func(pl Place, price quantity.Micro) int {
		if pl.Price <= price {
			return -1
		}
		return 1
	})
	return n
}

// empty marks those on a row, or as many of them as may still be out.
func (x *ruins) empty(row int32) {
	on := x.on[row]
	if len(on) == 0 {
		return
	}
	for n, from := 0, x.draw(len(on)); n < len(on) && len(x.out) < x.most; n++ {
		x.eject(on[(from+n)%len(on)], maxGroup)
	}
}

// eject marks a seat with all of its group, if that is no larger.
func (x *ruins) eject(i int32, largest int) {
	if slices.Contains(x.out, i) {
		return
	}
	g := x.Seats[i].Group
	if g < 0 {
		x.out, x.was = append(x.out, i), append(x.was, x.seats[i])
		return
	}
	if len(x.groups[g]) > largest {
		return
	}
	x.out, x.was = append(x.out, i), append(x.was, x.seats[i])
	for _, m := range x.groups[g] {
		if m != i {
			x.out, x.was = append(x.out, m), append(x.was, x.seats[m])
		}
	}
}

// vacate takes a seat from its place, seated puts it into one.
func (x *ruins) vacate(i int32) {
	s, k := &x.seats[i], &x.Kinds[x.Seats[i].Kind]
	if s.at < 0 {
		x.cost -= k.Nowhere
		last := x.idle[len(x.idle)-1]
		x.idle[x.place[i]], x.place[last] = last, x.place[i]
		x.idle, x.place[i] = x.idle[:len(x.idle)-1], -1
		return
	}
	pl := &k.Places[s.at]
	x.cost -= pl.Price
	x.take(pl.Row, x.size(k, s.at), -1)
	x.charge(i, k, s.at, -1)
	x.join(&x.Seats[i], pl, -1)
	for _, u := range s.on {
		x.cards[pl.Row][u.Card] += u.N
	}
	on := x.on[pl.Row]
	n := slices.Index(on, i)
	on[n] = on[len(on)-1]
	x.on[pl.Row] = on[:len(on)-1]
	s.at, s.on = Nowhere, nil
}

func (x *ruins) seated(i, at int32, units []Units) {
	s, k := &x.seats[i], &x.Kinds[x.Seats[i].Kind]
	s.at, s.on = at, units
	if at < 0 {
		x.cost += k.Nowhere
		x.place[i] = int32(len(x.idle)) //nolint:gosec // their number
		x.idle = append(x.idle, i)
		return
	}
	pl := &k.Places[at]
	x.cost += pl.Price
	x.take(pl.Row, x.size(k, at), 1)
	x.charge(i, k, at, 1)
	x.join(&x.Seats[i], pl, 1)
	for _, u := range units {
		x.cards[pl.Row][u.Card] -= u.N
	}
	x.on[pl.Row] = append(x.on[pl.Row], i)
}

// take takes a size from a row and its mates, or (-1) gives it back.
func (x *ruins) take(row int32, size []int64, sign int64) {
	room := x.room(row)
	for r, n := range size {
		room[r] -= sign * n
	}
	for _, mate := range x.Rows[row].Mates {
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
	if a := x.Seats[i].Account; a >= 0 {
		for n, c := range x.charges(k, at) {
			x.left[a][n] -= sign * c
		}
	}
}

// affords reports whether a seat's account has what it costs in a place.
func (x *ruins) affords(i int32, k *Kind, at int32) bool {
	if a := x.Seats[i].Account; a >= 0 {
		for n, c := range x.charges(k, at) {
			if c > x.left[a][n] {
				return false
			}
		}
	}
	return true
}

// room is what is free on a row.
func (x *ruins) room(row int32) []int64 { return x.rooms[int(row)*x.n:][:x.n:x.n] }

// restore puts all who were out back to where they had been.
func (x *ruins) restore() {
	for _, i := range x.out {
		if x.seats[i].at >= 0 || x.place[i] >= 0 {
			x.vacate(i)
		}
	}
	for n, i := range x.out {
		x.seated(i, x.was[n].at, x.was[n].on)
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
		rest += x.least[x.Seats[i].Kind]
	}
	for _, i := range x.turn {
		s := &x.Seats[i]
		if s.Group >= 0 {
			if x.seats[i].at >= 0 || x.place[i] >= 0 {
				continue // it had its turn with its group
			}
			for _, m := range x.groups[s.Group] {
				rest -= x.least[x.Seats[m].Kind]
			}
			if !x.seatGroup(s.Group, shadow, blind) && !x.forgo(x.groups[s.Group]) {
				return false
			}
		} else {
			rest -= x.least[s.Kind]
			at := x.choose(i, x.among(s.Kind, shadow), blind)
			if at < 0 && s.Stays {
				return false
			}
			x.put(i, at)
		}
		if x.cost+rest > allowed {
			return false
		}
	}
	return x.cost <= allowed
}

// forgo leaves seats without a place, and reports whether all may be.
func (x *ruins) forgo(list []int32) bool {
	for _, i := range list {
		if x.Seats[i].Stays {
			return false
		}
		x.seated(i, Nowhere, nil)
	}
	return true
}

// among are a kind's places in the order in which they are looked at; nil: as they are.
func (x *ruins) among(kind int32, shadow bool) []int32 {
	if shadow {
		return x.ranked[kind]
	}
	return nil
}

// put lays a seat's units and seats it.
func (x *ruins) put(i, at int32) {
	if at < 0 {
		x.seated(i, at, nil)
		return
	}
	k := &x.Kinds[x.Seats[i].Kind]
	pl := &k.Places[at]
	var on []Units
	if cards := x.cards[pl.Row]; cards != nil {
		on = x.Rows[pl.Row].lay(cards, x.size(k, at)[0], pl.Loose)
		for _, u := range on {
			cards[u.Card] += u.N // seated takes them
		}
	}
	x.seated(i, at, on)
}

// choose is the first place that has room, of some or (nil) of all. Now and then one is
// overlooked, for somebody who comes later.
func (x *ruins) choose(seat int32, among []int32, blind int) int32 {
	kind := x.Seats[seat].Kind
	k := &x.Kinds[kind]
	looked, most := 0, len(k.Places)
	if among != nil {
		most = len(among)
	}
	defer func() { x.looks -= 1 + looked/placesALook }()
	x.consider(&x.Seats[seat])
next:
	for ; looked < most; looked++ {
		at := looked
		if among != nil {
			at = int(among[looked])
		}
		pl := &k.Places[at]
		size, room := k.Sizes[at*x.n:][:x.n:x.n], x.rooms[int(pl.Row)*x.n:][:x.n:x.n]
		for r, takes := range size {
			if takes > room[r] {
				continue next
			}
		}
		if x.apart(&x.Seats[seat], pl.Row) || x.breaks(&x.Seats[seat], pl) {
			continue
		}
		if cards := x.cards[pl.Row]; cards != nil && !x.Rows[pl.Row].hosts(cards, size[0], pl.Loose) {
			continue
		}
		if !x.affords(seat, k, int32(at)) { //nolint:gosec // their number
			continue
		}
		if x.draw(blind) > 0 {
			return int32(at) //nolint:gosec // their number
		}
	}
	return Nowhere
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
	kind := func(i int32) *Kind { return &x.Kinds[x.Seats[i].Kind] }
	switch x.draw(4) {
	case 0, 2:
	case 1:
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(len(kind(a).Places), len(kind(b).Places)) })
	default:
		slices.SortStableFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(kind(b).Cards, kind(a).Cards), cmp.Compare(kind(b).Cores, kind(a).Cores))
		})
	}
}
