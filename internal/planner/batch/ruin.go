package batch

import (
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

const (
	// fewestRuined to mostRuined seats lose their places before no more are added:
	// now few, now many.
	fewestRuined, mostRuined = 4, 84
	// maxGroup is the largest group that loses its places for others.
	maxGroup = 24
	// maxIdle is below how many seats without a place choose with those who lost theirs.
	maxIdle = 8
	// regretted is how many seats are drawn next to the one with which a ruin begins, in every
	// second ruin of an annealed batch: the one that costs most more than it might is taken.
	regretted = 4
)

// ruin empties the row of some seat and of some that it would rather have, or as
// soon.
func (x *ruins) ruin() {
	x.out, x.was, x.turns, x.vacated, x.emptied = x.out[:0], x.was[:0], x.turns+1, x.vacated[:0], x.emptied[:0]
	x.most = fewestRuined + x.draw(x.mostOut-fewestRuined)
	var at int32
	if len(x.idle) > 0 && x.draw(x.firstIdle) == 0 {
		at = x.idle[x.draw(len(x.idle))] // one without a place more often
	} else {
		at = int32(x.draw(len(x.seats))) //nolint:gosec // below their number
		if x.regrets && x.draw(2) == 0 {
			at = regretful(x, at)
		}
	}
	s := &x.Seats[at]
	if x.short = s.Account; x.short >= 0 && (!x.bounded[x.short] || x.seats[at].at != Nowhere) {
		x.short = Nowhere
	}
	x.eject(at, math.MaxInt)
	if here := x.was[0].at; here >= 0 {
		x.empty(x.Kinds[s.Kind].Places[here].Row)
	}
	for _, part := range x.was[0].parts() {
		x.empty(x.Kinds[s.Kind].Split.Rows[part.Row].Row)
	}
	if x.was[0].at == Nowhere {
		x.emptyMore(at)
	}
	for range 1 + x.draw(4) {
		n := 0 // it, or one of those who lost their place for it
		if x.draw(2) == 0 {
			n = x.draw(len(x.out))
		}
		k := &x.Kinds[x.Seats[x.out[n]].Kind]
		if k.Split != nil && x.draw(2) == 0 {
			x.emptyForPart(k.Split)
			continue
		}
		if last := min(x.asCheap(k, x.was[n].at)+4, len(k.Places)); last > 0 {
			x.empty(k.Places[x.draw(last)].Row)
		}
	}
	x.clear(s)
	for n := x.draw(maxIdle); n > 0 && len(x.idle) > 0; n-- { // one may give way to several
		x.admit()
	}
	for _, i := range x.out {
		x.vacate(i)
	}
}

// admit has one who has no place, and would take one on a row that was emptied, choose with the
// others.
func (x *ruins) admit() {
	for range idleTries {
		i := x.idle[x.draw(len(x.idle))]
		if !x.wants(i) {
			continue
		}
		before := len(x.out)
		if x.eject(i, maxGroup); len(x.out) > before {
			x.emptyMore(i)
		}
		return
	}
}

// emptyMore empties some more rows where a seat without a place has a group.
func (x *ruins) emptyMore(i int32) {
	g, places := x.Seats[i].Group, x.Kinds[x.Seats[i].Kind].Places
	if g < 0 || len(places) == 0 {
		return
	}
	for range min(len(x.groups[g])-1, moreRows) {
		if x.draw(2) == 0 {
			x.empty(places[x.draw(len(places))].Row)
		}
	}
}

// wants reports whether a seat has a place on a row that was emptied, may be in parts, or is of
// the account for which others were ejected.
func (x *ruins) wants(i int32) bool {
	if x.short >= 0 && x.Seats[i].Account == x.short {
		return true
	}
	if x.placeOn == nil || x.Kinds[x.Seats[i].Kind].Split != nil {
		return true
	}
	places := x.placeOn[int(x.Seats[i].Kind)*len(x.Rows):][:len(x.Rows)]
	return slices.ContainsFunc(x.emptied, func(row int32) bool { return places[row] >= 0 })
}

const (
	// firstIdle is that one in so many ruins begins with a seat that has no place.
	firstIdle = 4
	// idleTries is how many of those are asked whether they want what was emptied.
	idleTries = 4
	// accountsOut is below how many others of an account lose their places for one that has none.
	accountsOut = 5
	// moreRows is how many rows at most are emptied for a group.
	moreRows = 3
)

// emptyForPart empties a row that one who is divided may want a part of, the cheap ones more often.
func (x *ruins) emptyForPart(sp *Split) {
	if n := len(sp.Rows); n > 0 {
		x.empty(sp.Rows[x.draw(1+x.draw(n))].Row)
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
	x.emptied = append(x.emptied, row)
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
	if x.ejected[i] == x.turns {
		return
	}
	g := x.Seats[i].Group
	if g >= 0 && len(x.groups[g]) > largest {
		return
	}
	x.lost.add(i, x.seats[i], x.turns)
	if g < 0 {
		return
	}
	for _, m := range x.groups[g] {
		if m != i {
			x.lost.add(m, x.seats[m], x.turns)
		}
	}
}

// add adds a seat that loses the place that it has.
func (l *lost) add(i int32, was state, turn int) {
	l.out, l.was, l.ejected[i] = append(l.out, i), append(l.was, was), turn
}

// clear makes room for a seat whose group shares a domain, in one of those, for one that
// must be apart from others, and for one whose account may be used up.
func (x *ruins) clear(s *Seat) {
	if x.short >= 0 {
		list := x.charged[x.short]
		for range x.draw(accountsOut) {
			x.eject(list[x.draw(len(list))], maxGroup)
		}
	}
	if x.shares(s) {
		if list := x.domainsOf(s.Group); len(list) > 0 {
			in := x.placesBy(within{s.Shares, s.Kind})[list[x.draw(min(len(list), domainsNear))].domain]
			for range 1 + x.draw(3) {
				if in != nil { // it may follow where it has no place
					x.empty(x.Kinds[s.Kind].Places[in[0].places[x.draw(len(in[0].places))]].Row)
				}
			}
		}
	}
	if len(x.Rules) == 0 || s.Rule < 0 {
		return
	}
	if apart := x.Rules[s.Rule].Apart; len(apart) > 0 {
		if list := x.ruled[apart[x.draw(len(apart))]].under; len(list) > 0 {
			x.eject(list[x.draw(len(list))], maxGroup)
		}
	}
}

// domainsNear is how many of the cheapest domains room is made in.
const domainsNear = 6

// regret is how much more a seat costs where it is than it would in its cheapest place.
func regret(x *ruins, i int32) quantity.Micro {
	k, at := x.Seats[i].Kind, x.seats[i].at
	if at < 0 {
		return 0
	}
	return x.Kinds[k].Places[at].Price - x.least[k]
}

// regretful is a seat of some that are drawn, the one with the most to regret.
func regretful(x *ruins, at int32) int32 {
	for range regretted {
		if i := int32(x.draw(len(x.seats))); regret(x, i) > regret(x, at) { //nolint:gosec // below their number
			at = i
		}
	}
	return at
}
