package place

import (
	"encoding/binary"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// A gang that is spread by several keys may fit, and yet the best place of one
// replica leave none for another: of two that must differ in region and in
// provider, one with the only provider that is in both regions. So when such a
// gang found too few places one by one, its replicas are seated with all in
// view: first by counts alone, then in earnest.
//
// One key needs none of this. There a replica finds no place only when every
// domain is full or maxSkew ahead of one that is, and no other order of places
// gets further.

// Bounds, so that a turn stays short however a gang is spread.
const (
	seatings = 4     // that are tried in earnest
	glances  = 5_000 // at a domain's room, for one of them
)

// cell is all offers of the same domains.
type cell struct {
	domains []string
	at      []int // the domains' places in their rules
	best    *match.Candidate
	room    int // for how many replicas, at the most
}

// seating is a search for places of a whole gang by counts.
type seating struct {
	spread []rules.Spread
	cells  []cell
	// at is the cell of each replica so far, taken how many each cell has.
	at    []int
	taken []int
	// dead are counts by cell from which no further replica led to the end; failed
	// are those that did not fit in earnest.
	dead    map[string]bool
	failed  [][]int
	glances int
}

// seatingOf is the search for a job's replicas, with what has room for any.
func (r *Placer) seatingOf(j *draft.Job, q Request, alt int, tasks []draft.Task, thrifty bool) *seating {
	s := r.ClassFor(j, q, alt)
	l := r.LimitsFor(j, q, s, match.SpendLimits{}, int64(len(tasks)-1))
	rules := r.rulesFor(j, q, s, tasks[0].Replica, nil)
	x := &seating{spread: rules.Spread}
	rules.Spread, l.Rules = nil, rules         // one that is too full now may not be, later
	at := map[[v1alpha1.MaxSpread]string]int{} // by the domains of each rule
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Fails != "" || l.Rejects(c) != "" {
			continue
		}
		var key [v1alpha1.MaxSpread]string
		for k := range x.spread {
			key[k] = x.spread[k].DomainOf(c.Offer)
		}
		n, known := at[key]
		if !known {
			n = len(x.cells)
			at[key] = n
			x.cells = append(x.cells, cell{best: c})
			for k := range x.spread {
				d := x.spread[k].DomainOf(c.Offer)
				x.cells[n].domains = append(x.cells[n].domains, d)
				x.spread[k].Count(d, 0)
			}
		}
		to := &x.cells[n]
		to.room += layout.RoomFor(r.Match, s.Request, c, len(tasks)-to.room, nil)
		if match.Before(c, to.best, thrifty) {
			to.best = c
		}
	}
	for i := range x.cells {
		for k, d := range x.cells[i].domains {
			n, _ := slices.BinarySearch(x.spread[k].Domains, d)
			x.cells[i].at = append(x.cells[i].at, n)
		}
	}
	slices.SortFunc(x.cells, func(a, b cell) int { return match.Compare(a.best, b.best, thrifty) })
	return x
}

// find is the domains for each of n replicas, nil when there are none or they
// were not found within bounds.
func (x *seating) find(n int) [][]string {
	room := 0
	for i := range x.cells {
		room += x.cells[i].room
	}
	if room < n {
		return nil
	}
	for _, k := range x.at {
		x.book(k, -1)
	}
	x.at, x.taken, x.dead, x.glances = x.at[:0], make([]int, len(x.cells)), map[string]bool{}, glances
	if !x.seat(n) {
		return nil
	}
	seats := make([][]string, n)
	for i, k := range x.at {
		seats[i] = x.cells[k].domains
	}
	return seats
}

// seat finds places for the replicas from the next to the last of n.
func (x *seating) seat(n int) bool {
	if len(x.at) == n {
		return true
	}
	var counts []byte
	for _, k := range x.taken {
		counts = binary.AppendUvarint(counts, uint64(k))
	}
	if x.dead[string(counts)] {
		return false
	}
	for k := range x.cells {
		if x.glances--; x.glances < 0 {
			return false
		}
		if x.taken[k] >= x.cells[k].room || x.breaks(k) {
			continue
		}
		x.at = append(x.at, k)
		x.book(k, 1)
		if !slices.ContainsFunc(x.failed, x.holds) && x.seat(n) {
			return true
		}
		x.at = x.at[:len(x.at)-1]
		x.book(k, -1)
	}
	x.dead[string(counts)] = true
	return false
}

// holds reports whether all cells have at least so many.
func (x *seating) holds(counts []int) bool {
	for k, n := range counts {
		if x.taken[k] < n {
			return false
		}
	}
	return true
}

// breaks reports whether one more replica in a cell would break a rule.
func (x *seating) breaks(k int) bool {
	for i, at := range x.cells[k].at {
		if rule := &x.spread[i]; rule.Refuses(rule.Used[at]) {
			return true
		}
	}
	return false
}

// book counts n more replicas in a cell.
func (x *seating) book(k, n int) {
	x.taken[k] += n
	for i, at := range x.cells[k].at {
		x.spread[i].Used[at] += n
		x.spread[i].Sum()
	}
}
