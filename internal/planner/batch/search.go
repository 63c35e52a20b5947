package batch

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

const (
	// ruinsPerSeat is how often a batch is ruined in each turn, but for the bounds of manyRuins,
	// between which so many ruins are shared by all seats.
	ruinsPerSeat, ruinedInAll = 2_000, 10_000_000
	// seatsARuin is from how many seats on a ruin counts as several.
	seatsARuin = 24
)

// manyRuins are how many ruins at most a turn of many and of few seats has.
var manyRuins = [...]int{50_000, 75_000}

// timesOf is how many ruins a turn has.
func timesOf(x *ruins) int {
	return min(len(x.seats)*ruinsPerSeat, max(manyRuins[0], min(ruinedInAll/len(x.seats), manyRuins[1])))
}

// search goes on from result to result, of those that cost no more than what is allowed after
// n of so many ruins, by the cost before it and the least yet. It ends with the cheapest, and
// reports whether that is cheaper than the start.
func (x *ruins) search(times int, allowed func(n int, before, least quantity.Micro) quantity.Micro) bool {
	first, best, least := x.cost-x.extra, x.cost-x.extra, x.cost
	kept := slices.Clone(x.seats)
	dirty := false
	for n := 0; n < times && x.looks > 0; n += 1 + len(x.out)/seatsARuin {
		before := x.cost
		x.ruin()
		if !x.fillUp(allowed(n, before, least)) {
			x.restore()
			x.cost = before
			continue
		}
		least = min(least, x.cost)
		if x.cost-x.extra < best {
			best, dirty = x.cost-x.extra, true
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
		if at, now := int32(i), x.seats[i]; now.at != then[i].at || !slices.Equal(now.on(), then[i].on()) || !EqualParts(now.parts(), then[i].parts()) { //nolint:gosec // their number
			x.vacate(at)
			moved = append(moved, at)
		}
	}
	for _, i := range moved {
		x.seated(i, then[i])
	}
}

// swap exchanges the places of those who were out with those they had.
func (x *ruins) swap() {
	for n, i := range x.out {
		x.seats[i], x.was[n] = x.was[n], x.seats[i]
	}
}

// restore puts all who were out back to where they had been.
func (x *ruins) restore() {
	for _, i := range x.out {
		if !x.isOut(i) {
			x.vacate(i)
		}
	}
	for n, i := range x.out {
		x.seated(i, x.was[n])
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
			if !x.isOut(i) {
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
			if !x.sit(i, x.among(s.Kind, shadow), shadow, false, blind) {
				if s.Stays {
					return false
				}
				x.put(i, Nowhere)
			}
		}
		if x.cost+rest > allowed {
			return false
		}
	}
	if len(x.inParts) > 0 && x.cost <= allowed {
		x.unite()
	}
	return x.cost <= allowed
}

// forgo leaves seats without a place, and reports whether all may be.
func (x *ruins) forgo(list []int32) bool {
	for _, i := range list {
		if x.Seats[i].Stays {
			return false
		}
		x.put(i, Nowhere)
	}
	return true
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
		byRank(x, list, x.fewPlaces)
	default:
		byRank(x, list, x.biggest)
	}
}
