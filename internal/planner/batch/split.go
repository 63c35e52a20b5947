package batch

import (
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// InParts is the place of a seat that is put together from parts.
const InParts = -2

// Split is how a seat of a kind is put together where no place holds it whole: from the
// fewest parts that do, each on a row of its own.
type Split struct {
	// Most is of how many parts at most, Least how many of the Of units each has at least.
	Most      int32
	Least, Of int64
	// Rows are where a part can be, the cheapest unit first, each row once.
	Rows  []PartRow
	Deals []PartDeal
}

// PartRow is a row, and what parts there take and cost.
type PartRow struct {
	Row, Deal int32
	// Loose: units may lie on any cards.
	Loose bool
}

// PartDeal is what a part of so many units takes and costs, from 0 units to as many as are
// sold: Sizes one number a resource, Charges as many as an account has, units by units.
// What it takes grows with the units.
type PartDeal struct {
	Sizes, Charges []int64
	Prices         []quantity.Micro
}

// Part is units of a seat on a row, by its number among Split.Rows.
type Part struct {
	Row   int32
	Units int64
	// On is where its units lie.
	On []Units
}

func (p Part) equal(o Part) bool {
	return p.Row == o.Row && p.Units == o.Units && slices.Equal(p.On, o.On)
}

// EqualParts reports whether two seats are put together in the same way.
func EqualParts(a, b []Part) bool { return slices.EqualFunc(a, b, Part.equal) }

// deal is what parts on the at-th row take and cost.
func (s *Split) deal(at int32) *PartDeal { return &s.Deals[s.Rows[at].Deal] }

// price is what parts come to.
func (s *Split) price(parts []Part) (sum quantity.Micro) {
	for i := range parts {
		sum += s.deal(parts[i].Row).Prices[parts[i].Units]
	}
	return sum
}

// exceeds reports whether so many units on the at-th row come to as much as a sum, each at
// its price in the largest part. Products, and no quotients: they follow the scale of prices.
func (s *Split) exceeds(at int32, units int64, sum quantity.Micro) bool {
	prices := s.deal(at).Prices
	return prices[len(prices)-1]*quantity.Micro(units) >= sum*quantity.Micro(len(prices)-1)
}

// least is no more than what any parts of a seat come to.
func (s *Split) least() quantity.Micro {
	least := quantity.Micro(math.MaxInt64)
	for i := range s.Deals {
		for units := s.Least; units < int64(len(s.Deals[i].Prices)); units++ {
			least = min(least, (s.Deals[i].Prices[units]*quantity.Micro(s.Of)+quantity.Micro(units)-1)/quantity.Micro(units))
		}
	}
	return least
}

// size is what a part takes, of n resources.
func (d *PartDeal) size(units int64, n int) []int64 { return d.Sizes[int(units)*n:][:n:n] }

// charges are what a part costs an account of n numbers.
func (d *PartDeal) charges(units int64, n int) []int64 { return d.Charges[int(units)*n:][:n:n] }

// mostOn is how many places are kept by kind and row.
const mostOn = 1 << 20

// placesOn are the places by kind and row, nil where there are too many.
func (p *Problem) placesOn() []int32 {
	if len(p.Kinds)*len(p.Rows) > mostOn {
		return nil
	}
	out := make([]int32, len(p.Kinds)*len(p.Rows))
	for i := range out {
		out[i] = Nowhere
	}
	for i := range p.Kinds {
		for at := range p.Kinds[i].Places {
			out[i*len(p.Rows)+int(p.Kinds[i].Places[at].Row)] = int32(at) //nolint:gosec // their number
		}
	}
	return out
}

// kindInParts is what is kept of a kind that may be in parts: its rows in either order, how many
// units the smallest part takes, and for how many there was room on each row when it was last asked.
type kindInParts struct {
	byPrice, ranked order
	fewest          int64
	known           []partRoom
}

// partRoom is for how many units a row had room after so many moves there.
type partRoom struct{ moves, room int64 }

// kindsInParts is what is kept of each kind.
func (p *Problem) kindsInParts(ranked [][]int32) []kindInParts {
	out := make([]kindInParts, len(p.Kinds))
	for i := range p.Kinds {
		sp := p.Kinds[i].Split
		if sp == nil {
			continue
		}
		k := &out[i]
		k.known = make([]partRoom, len(sp.Rows))
		k.fewest = math.MaxInt64
		for at := range sp.Rows {
			k.fewest = min(k.fewest, sp.deal(int32(at)).size(sp.Least, len(p.Pooled))[0]) //nolint:gosec // their number
			k.byPrice.rooms = append(k.byPrice.rooms, p.roomOf(sp.Rows[at].Row))
		}
		k.ranked.places = ranked[i]
		for _, at := range ranked[i] {
			k.ranked.rooms = append(k.ranked.rooms, k.byPrice.rooms[at])
		}
	}
	return out
}
