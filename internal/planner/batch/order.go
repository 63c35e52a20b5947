package batch

import (
	"cmp"
	"slices"
)

// order are places of a kind in the order in which they are looked at: which, nil for all as
// they are, and where the room of each begins.
type order struct{ places, rooms []int32 }

func (o order) place(n int) int32 {
	if o.places == nil {
		return int32(n) //nolint:gosec // their number
	}
	return o.places[n]
}

// orders are the places of each kind, the cheapest first, and the best by shadow price first.
// By rank kinds with few places go first, or the biggest.
type orders struct {
	byPrice, ranked    []order
	fewPlaces, biggest []int32
	keys               []uint64
}

func (p *Problem) orders(ranked [][]int32) orders {
	out := orders{
		fewPlaces: p.ranks(func(a, b *Kind) int { return cmp.Compare(len(a.Places), len(b.Places)) }),
		biggest: p.ranks(func(a, b *Kind) int {
			return cmp.Or(cmp.Compare(b.Cards, a.Cards), cmp.Compare(b.Cores, a.Cores))
		}),
	}
	for i := range p.Kinds {
		k := &p.Kinds[i]
		out.ranked, out.byPrice = append(out.ranked, p.order(k, ranked[i])), append(out.byPrice, p.order(k, nil))
	}
	return out
}

// order is that of some places of a kind, or (nil) of all.
func (p *Problem) order(k *Kind, places []int32) order {
	n := len(places)
	if places == nil {
		n = len(k.Places)
	}
	o := order{places: places, rooms: make([]int32, 0, n)}
	for i := range n {
		o.rooms = append(o.rooms, p.roomOf(k.Places[o.place(i)].Row))
	}
	return o
}

// roomOf is where the room of a row begins.
func (p *Problem) roomOf(row int32) int32 {
	return row * int32(len(p.Pooled)) //nolint:gosec // there are few resources
}

// among are a kind's places in the order in which they are looked at.
func (x *ruins) among(kind int32, shadow bool) order {
	if shadow {
		return x.ranked[kind]
	}
	return x.byPrice[kind]
}

// byRank sorts seats by the rank of their kinds, those of one rank as they were.
func byRank(x *ruins, list, ranks []int32) {
	x.keys = x.keys[:0]
	for n, i := range list {
		x.keys = append(x.keys, uint64(ranks[x.Seats[i].Kind])<<32|uint64(n)) //nolint:gosec // none is below 0
	}
	slices.Sort(x.keys)
	x.members = append(x.members[:0], list...)
	for n, key := range x.keys {
		list[n] = x.members[uint32(key)] //nolint:gosec // the lower half
	}
}

// ranks are the numbers of the kinds in an order, equal where that does not tell them apart.
func (p *Problem) ranks(order func(a, b *Kind) int) []int32 {
	sorted, ranks := make([]int32, len(p.Kinds)), make([]int32, len(p.Kinds))
	for i := range sorted {
		sorted[i] = int32(i) //nolint:gosec // their number
	}
	slices.SortStableFunc(sorted, func(a, b int32) int { return order(&p.Kinds[a], &p.Kinds[b]) })
	for n, i := range sorted {
		if n > 0 {
			last := sorted[n-1]
			if ranks[i] = ranks[last]; order(&p.Kinds[last], &p.Kinds[i]) != 0 {
				ranks[i]++
			}
		}
	}
	return ranks
}
