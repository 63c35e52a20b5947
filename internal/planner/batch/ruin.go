package batch

import (
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// ruin empties the row of some seat and of some that it would rather have, or as
// soon.
func (x *ruins) ruin() {
	x.out, x.was, x.turns, x.vacated = x.out[:0], x.was[:0], x.turns+1, x.vacated[:0]
	x.most = fewestRuined + x.draw(mostRuined-fewestRuined)
	at := int32(x.draw(len(x.seats))) //nolint:gosec // below their number
	s := &x.Seats[at]
	x.eject(at, math.MaxInt)
	if here := x.was[0].at; here >= 0 {
		x.empty(x.Kinds[s.Kind].Places[here].Row)
	}
	for _, part := range x.was[0].parts {
		x.empty(x.Kinds[s.Kind].Split.Rows[part.Row].Row)
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
		x.eject(x.idle[x.draw(len(x.idle))], maxGroup)
	}
	for _, i := range x.out {
		x.vacate(i)
	}
}

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

// clear makes room for a seat whose group shares a domain, in one of those, and for one that
// must be apart from others.
func (x *ruins) clear(s *Seat) {
	if x.shares(s) {
		if list := x.domainsOf(s.Group); len(list) > 0 {
			in := x.placesBy(within{s.Shares, s.Kind})[list[x.draw(min(len(list), domainsNear))].domain]
			for range 1 + x.draw(3) {
				if in != nil { // it may follow where it has no place
					x.empty(x.Kinds[s.Kind].Places[in[0][x.draw(len(in[0]))]].Row)
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
