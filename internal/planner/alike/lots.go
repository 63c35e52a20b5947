package alike

import (
	"hash/maphash"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Lots number offers by all that decides what the same request takes of them and pays: the
// offers of a lot are measured and priced once.
type Lots struct {
	// regions: the region counts, too, for what has data to move.
	regions bool
	// known are numbers of lots by a hash, or the next free one, as a map with keys of text
	// allocates one for each lot; lots are their facts by number less one, and amounts where
	// the capacities of them lie.
	known   map[uint64]int32
	seed    maphash.Seed
	lots    []lot
	amounts []int64
	// of are those of the offers by their index, 0 where nobody asked yet.
	of []int32
	// stale: some have none.
	stale bool
}

// lot is what offers have in common. Alone distinguishes those that share a lot with none:
// what is sold of them is rounded up by steps, or shared out by their capacity, or grows.
type lot struct {
	price   *v1alpha1.Price
	perCard int64
	cards   int
	region  string
	alone   int
	// from and to: where the capacity lies in amounts.
	from, to int
}

// NewLots are those of so many offers. Regions: those of a lot are of one region, too.
func NewLots(offers int, regions bool) *Lots {
	return &Lots{regions: regions, known: make(map[uint64]int32, offers), seed: maphash.MakeSeed(), of: make([]int32, offers), stale: true}
}

// Describe notes that an offer may be another.
func (l *Lots) Describe(o *inventory.Offer) {
	l.of[o.Index], l.stale = 0, true
}

// Of are the numbers of all offers by their index, from 1 to the last. They are valid until an
// offer is described.
func (l *Lots) Of(offers []*inventory.Offer) (numbers []int32, last int32) {
	if !l.stale {
		return l.of, l.last()
	}
	if len(l.lots) > 4*len(l.of)+1024 { // most are of what offers were before
		clear(l.known)
		clear(l.lots)
		clear(l.of)
		l.lots, l.amounts = l.lots[:0], l.amounts[:0]
	}
	if len(l.lots) == 0 && len(offers) > 0 {
		l.lots = make([]lot, 0, len(offers))
		l.amounts = make([]int64, 0, len(offers)*len(offers[0].Capacity))
	}
	for i, o := range offers {
		if l.of[i] == 0 {
			l.of[i] = l.number(o)
		}
	}
	l.stale = false
	return l.of, l.last()
}

func (l *Lots) last() int32 { return int32(len(l.lots)) } //nolint:gosec // a few for each offer

// number is that of an offer's lot.
func (l *Lots) number(o *inventory.Offer) int32 {
	k, capacity := lot{alone: 1 + o.Index}, quantity.Vector(nil)
	if len(o.Min)+len(o.Step) == 0 && (o.Price == nil || o.Price.Flat == nil) && len(o.Flavor.Spec.ScalableTo) == 0 {
		k, capacity = lot{price: o.Price, perCard: o.UnitsPerCard, cards: o.CardKind}, o.Capacity
		if l.regions {
			k.region = o.Location.Region
		}
	}
	at := maphash.Comparable(l.seed, k)
	for _, n := range capacity {
		at = at*31 + uint64(n) //nolint:gosec // a hash
	}
	for ; ; at++ {
		n, known := l.known[at]
		if !known {
			k.from = len(l.amounts)
			l.amounts = append(l.amounts, capacity...)
			k.to = len(l.amounts)
			l.lots = append(l.lots, k)
			l.known[at] = l.last()
			return l.last()
		}
		was := l.lots[n-1]
		same := slices.Equal(l.amounts[was.from:was.to], capacity)
		if was.from, was.to = 0, 0; same && was == k {
			return n
		}
	}
}
