package contend

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// unit is what gives way as a whole: a contract, or all contracts of a gang,
// of which a part would be of no use.
type unit struct {
	contracts []*v1alpha1.Contract
	relief    quantity.Vector
	priority  int32
	start     int64 // of its oldest contract
	name      string
}

// fewest is the best of the units that together give what is missing: one alone,
// a pair, or else as many as it takes, without any that the others make
// needless. The units come the least disturbing first.
func fewest(units []unit, lack quantity.Vector) []unit {
	better := func(a, b []unit) bool { return b == nil || costOf(a, lack).before(costOf(b, lack)) }
	var best []unit
	for i := range units {
		if lack.Within(units[i].relief) && better(units[i:i+1], best) {
			best = units[i : i+1]
		}
	}
	if best == nil && len(units) <= pairUnits {
		for i := range units {
			for k := i + 1; k < len(units); k++ {
				if pair := []unit{units[i], units[k]}; lack.Within(units[i].relief.Clone().Add(units[k].relief)) && better(pair, best) {
					best = pair
				}
			}
		}
	}
	if best != nil {
		return best
	}
	var sum quantity.Vector
	for i := range units {
		sum, best = sum.Add(units[i].relief), append(best, units[i])
		if lack.Within(sum) {
			return pruned(best, sum, lack)
		}
	}
	return nil
}

// disturbance is what a set of units costs others.
type disturbance struct {
	contracts int
	priority  int32 // the highest
	start     int64 // the earliest
	overshoot int64 // GPUs that come free and are not needed
}

// before is the order of sets: the fewest contracts, the lowest priority, the
// youngest, the fewest GPUs to spare.
func (d disturbance) before(o disturbance) bool { return d.compare(o) < 0 }

func (d disturbance) compare(o disturbance) int {
	return cmp.Or(cmp.Compare(d.contracts, o.contracts), cmp.Compare(d.priority, o.priority),
		cmp.Compare(o.start, d.start), cmp.Compare(d.overshoot, o.overshoot))
}

func costOf(set []unit, lack quantity.Vector) disturbance {
	d := disturbance{priority: -1, start: 1 << 62}
	gpus := int64(0)
	for i := range set {
		u := &set[i]
		d.contracts += len(u.contracts)
		d.priority, d.start = max(d.priority, u.priority), min(d.start, u.start)
		gpus += u.relief.At(quantity.GPU)
	}
	d.overshoot = max(gpus-lack.At(quantity.GPU), 0)
	return d
}

// pruned lets those off whom the others make needless, the most disturbing
// first.
func pruned(set []unit, sum, lack quantity.Vector) []unit {
	for i := len(set) - 1; i >= 0; i-- {
		if rest := sum.Clone().Sub(set[i].relief); lack.Within(rest) {
			set, sum = slices.Delete(set, i, i+1), rest
		}
	}
	return set
}
