package alike

import (
	"encoding/binary"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Lots number offers by all that decides what the same request takes of them and pays: the
// offers of a lot are measured and priced once.
type Lots struct {
	// regions: the region counts, too, for what has data to move.
	regions bool
	known   map[lot]int32
	next    int32
	// of are those of the offers by their index, 0 where nobody asked yet.
	of []int32
	// stale: some have none.
	stale bool
}

// lot is what offers have in common. Alone distinguishes those that share a lot with none:
// what is sold of them is rounded up by steps, or shared out by their capacity, or grows.
type lot struct {
	price    *v1alpha1.Price
	perCard  int64
	cards    int
	capacity string
	region   string
	alone    int
}

// NewLots are those of so many offers. Regions: those of a lot are of one region, too.
func NewLots(offers int, regions bool) *Lots {
	return &Lots{regions: regions, known: map[lot]int32{}, of: make([]int32, offers), stale: true}
}

// Describe notes that an offer may be another.
func (l *Lots) Describe(o *inventory.Offer) {
	l.of[o.Index], l.stale = 0, true
}

// Of are the numbers of all offers by their index, from 1 to the last. They are valid until an
// offer is described.
func (l *Lots) Of(offers []*inventory.Offer) (numbers []int32, last int32) {
	if !l.stale {
		return l.of, l.next
	}
	if int(l.next) > 4*len(l.of)+1024 { // most are of what offers were before
		l.known, l.next = map[lot]int32{}, 0
		clear(l.of)
	}
	for i, o := range offers {
		if l.of[i] == 0 {
			l.of[i] = l.number(o)
		}
	}
	l.stale = false
	return l.of, l.next
}

// number is that of an offer's lot.
func (l *Lots) number(o *inventory.Offer) int32 {
	k := lot{price: o.Price, perCard: o.UnitsPerCard, cards: o.CardKind}
	if len(o.Min)+len(o.Step) > 0 || o.Price != nil && o.Price.Flat != nil || len(o.Flavor.Spec.ScalableTo) > 0 {
		k = lot{alone: 1 + o.Index}
	} else {
		var b []byte
		for _, n := range o.Capacity {
			b = binary.AppendVarint(b, n)
		}
		k.capacity = string(b)
		if l.regions {
			k.region = o.Location.Region
		}
	}
	n, known := l.known[k]
	if !known {
		l.next++
		n = l.next
		l.known[k] = n
	}
	return n
}
