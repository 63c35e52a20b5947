package batch

import (
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// sit gives a seat a place among some or, where none holds it and it need not be whole,
// parts. It reports whether there is any. Now and then parts are taken though a place would
// hold it, for those who come later may fill that (unite).
func (x *ruins) sit(i int32, among order, shadow, whole bool, blind int) bool {
	k := &x.Kinds[x.Seats[i].Kind]
	early := !whole && k.Split != nil && x.draw(earlyParts) == 0
	at := x.choose(i, among, blind)
	if whole || k.Split == nil || at >= 0 && !early {
		if at >= 0 {
			x.put(i, at)
		}
		return at >= 0
	}
	parts := x.divide(i, shadow, blind)
	switch {
	case parts != nil && (at < 0 || k.Split.price(parts) < k.Places[at].Price):
		x.putParts(i, parts)
	case at >= 0:
		x.put(i, at)
	default:
		return false
	}
	return true
}

// earlyParts is that one in so many seats takes parts though a place would hold it.
const earlyParts = 4

// putParts lays the units of parts and seats them.
func (x *ruins) putParts(i int32, parts []Part) {
	sp := x.Kinds[x.Seats[i].Kind].Split
	for n := range parts {
		at := &sp.Rows[parts[n].Row]
		if cards := x.cards[at.Row]; cards != nil {
			parts[n].On = x.Rows[at.Row].lay(cards, sp.deal(parts[n].Row).size(parts[n].Units, x.n)[0], at.Loose)
			for _, u := range parts[n].On {
				cards[u.Card] += u.N // eachPart takes them
			}
		}
	}
	x.seated(i, state{at: InParts, lie: &lie{parts: parts}})
}

// unite has seats in parts choose again that a place has come to hold, or fewer parts. In some
// turns another one goes to that place in their stead, where that costs least.
func (x *ruins) unite() {
	blocks := 0
	if x.draw(2) == 0 {
		blocks = mostBlocks
	}
	for n := 0; n < len(x.inParts); n++ {
		i := x.inParts[n]
		out := slices.Contains(x.out, i)
		then := x.seats[i]
		if !out && !x.mayHold(i, &then) {
			continue
		}
		x.vacate(i)
		at, fewer := x.holds(i, out), []Part(nil)
		if at < 0 && len(then.parts()) > 2 { // two are the fewest
			if fewer = x.divide(i, false, allSeen); len(fewer) >= len(then.parts()) {
				fewer = nil
			}
		}
		if at < 0 && fewer == nil {
			x.seated(i, then)
			last := len(x.inParts) - 1 // back to where it was in the list
			x.inParts[n], x.inParts[last] = x.inParts[last], x.inParts[n]
			continue
		}
		if at >= 0 && blocks > 0 {
			blocks--
			x.seated(i, then)
			if x.block(i, x.Kinds[x.Seats[i].Kind].Places[at].Row) {
				n = -1
				continue
			}
			x.vacate(i)
		}
		if !out {
			x.out, x.was = append(x.out, i), append(x.was, then)
		}
		if at >= 0 {
			x.put(i, at)
		} else {
			x.putParts(i, fewer)
		}
		n = -1
	}
}

const (
	// mostBlocks is how often somebody goes to a place in another's stead in one turn.
	mostBlocks = 4
)

// block moves the seat for which that costs least to a row, so that the row no longer holds
// another whole, and reports whether one could be.
func (x *ruins) block(i, row int32) bool {
	if x.placeOn == nil {
		return false
	}
	best, to, least := int32(-1), int32(-1), quantity.Micro(math.MaxInt64)
	x.looks -= 1 + len(x.seats)/placesALook
	for n := range x.seats {
		m, s := int32(n), &x.Seats[n] //nolint:gosec // their number
		at, now := x.placeOn[int(s.Kind)*len(x.Rows)+int(row)], x.seats[n].at
		if at < 0 || now < 0 || m == i || s.Group >= 0 || x.isRuled(s) {
			continue
		}
		k := &x.Kinds[s.Kind]
		if k.Places[now].Row == row || k.Places[at].Price-k.Places[now].Price >= least || !x.hosts(m, k, at) || x.draw(4) == 0 {
			continue
		}
		best, to, least = m, at, k.Places[at].Price-k.Places[now].Price
	}
	if best < 0 {
		return false
	}
	if !slices.Contains(x.out, best) {
		x.out, x.was = append(x.out, best), append(x.was, x.seats[best])
	}
	x.vacate(best)
	x.put(best, to)
	return true
}

// mayHold reports whether a seat that stayed in its parts might have a place, or fewer parts,
// on a row that others have left.
func (x *ruins) mayHold(i int32, now *state) bool {
	k := &x.Kinds[x.Seats[i].Kind]
	if x.placeOn == nil || len(now.parts()) > 2 {
		return true
	}
	fewest := x.fewest[x.Seats[i].Kind]
	for _, row := range x.vacated {
		at := x.placeOn[int(x.Seats[i].Kind)*len(x.Rows)+int(row)]
		if at < 0 {
			continue
		}
		if x.room(row)[0] >= fewest && x.hosts(i, k, at) || len(x.Rows[row].Mates) > 0 {
			return true
		}
		for _, part := range now.parts() {
			if k.Split.Rows[part.Row].Row == row {
				return true
			}
		}
	}
	return false
}

// holds is the cheapest place that holds a seat, Nowhere for none. For one that stayed in its
// parts only rows that others have left are asked.
func (x *ruins) holds(i int32, all bool) int32 {
	k := &x.Kinds[x.Seats[i].Kind]
	x.looks--
	for n := range k.Places {
		at := int32(n) //nolint:gosec // their number
		if (all || x.freed[k.Places[n].Row] == x.turns) && x.hosts(i, k, at) {
			return at
		}
	}
	return Nowhere
}

// hosts reports whether a place has room for a seat that is under no rule.
func (x *ruins) hosts(seat int32, k *Kind, at int32) bool {
	pl, size := &k.Places[at], takes(x, x.Seats[seat].Kind, at)
	room := x.room(pl.Row)
	for r, takes := range size {
		if takes > room[r] {
			return false
		}
	}
	cards := x.cards[pl.Row]
	return (cards == nil || x.Rows[pl.Row].hosts(cards, size[0], pl.Loose)) && x.affords(seat, k, at)
}
