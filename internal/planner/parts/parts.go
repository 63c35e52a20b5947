package parts

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Part is the next part to place: Rest units are left, for it and for After further parts.
type Part struct {
	Number      int32
	Rest, After int64
}

// Room is an offer and how many units it could take now.
type Room struct {
	Offer *inventory.Offer
	Units int64
	rank  int64 // by units, the largest first
}

// Rooms are offers in the order in which they are preferred.
type Rooms struct {
	List   []Room
	bySize []*Room
}

// Of are the rooms of a list, which is theirs from now on.
func Of(list []Room) *Rooms {
	r := &Rooms{List: list}
	for i := range list {
		r.bySize = append(r.bySize, &list[i])
	}
	slices.SortStableFunc(r.bySize, func(a, b *Room) int { return cmp.Compare(b.Units, a.Units) })
	for i, at := range r.bySize {
		at.rank = int64(i)
	}
	return r
}

// Reach is how many units the largest offers have together, as many as there are parts
// after this one; false where there are too few offers.
func (r *Rooms) Reach(p Part) (units int64, enough bool) {
	if int64(len(r.List)) <= p.After {
		return 0, false
	}
	for _, other := range r.bySize[:p.After] {
		units += other.Units
	}
	return units, true
}

// Takes is how many units an offer takes as a part, 0 where that leaves more than others can
// take: least is how many units each part has at the least, reach what Reach found.
func (r *Rooms) Takes(at *Room, p Part, least, reach int64) int64 {
	units := min(at.Units, p.Rest-p.After*least)
	if at.rank < p.After {
		reach += r.bySize[p.After].Units - at.Units
	}
	if reach < p.Rest-units || p.After == 0 && units < p.Rest {
		return 0
	}
	return units
}

// Sizes finds for how many units of a replica offers have room.
type Sizes struct {
	least, most int64
	fits        func(o *inventory.Offer, units int64) bool
	known       map[*inventory.Offer]int64
}

// NewSizes looks for at least least units, which are taken to fit, and at most most. What
// fits grows no further with the units.
func NewSizes(least, most int64, fits func(o *inventory.Offer, units int64) bool) *Sizes {
	return &Sizes{least, most, fits, map[*inventory.Offer]int64{}}
}

// For is for how many units an offer has room, found by halving.
func (s *Sizes) For(o *inventory.Offer) int64 {
	low, known := s.known[o]
	if known {
		return low
	}
	low = s.least
	for high := s.most; low < high; {
		if mid := (low + high + 1) / 2; s.fits(o, mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	s.known[o] = low
	return low
}

// Changed forgets what is known of an offer and of those of its pool.
func (s *Sizes) Changed(o *inventory.Offer) {
	delete(s.known, o)
	for _, peer := range o.PoolPeers {
		delete(s.known, peer)
	}
}
