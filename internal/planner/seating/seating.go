package seating

import (
	"encoding/binary"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// glances at a domain's room, for one search, so that a turn stays short however a gang is
// spread.
const glances = 5_000

// cell is all offers of the same domains.
type cell struct {
	domains []string
	at      []int // the domains' places in their rules
	best    *match.Candidate
	room    int // for how many replicas, at the most
}

// Search is a search for places of a whole gang by counts. Who has added all candidates
// sorts it before the first Find.
type Search struct {
	spread []rules.Spread
	cells  []cell
	of     map[[v1alpha1.MaxSpread]string]int // cells by the domains of each rule
	// at is the cell of each replica so far, taken how many each cell has.
	at    []int
	taken []int
	// dead are counts by cell from which no further replica led to the end; failed
	// are those that did not fit in earnest.
	dead    map[string]bool
	failed  [][]int
	glances int
}

// New is a search by the rules of a gang, which it counts in.
func New(spread []rules.Spread) *Search {
	return &Search{spread: spread, of: map[[v1alpha1.MaxSpread]string]int{}}
}

// Add counts a candidate in the cell of its domains. room is called with how many replicas
// that has room for, and returns for how many more the candidate has.
func (x *Search) Add(c *match.Candidate, thrifty bool, room func(has int) int) {
	var key [v1alpha1.MaxSpread]string
	for k := range x.spread {
		key[k] = x.spread[k].DomainOf(c.Offer)
	}
	n, known := x.of[key]
	if !known {
		n = len(x.cells)
		x.of[key] = n
		x.cells = append(x.cells, cell{best: c})
		for k := range x.spread {
			d := x.spread[k].DomainOf(c.Offer)
			x.cells[n].domains = append(x.cells[n].domains, d)
			x.spread[k].Count(d, 0)
		}
	}
	to := &x.cells[n]
	to.room += room(to.room)
	if match.Before(c, to.best, thrifty) {
		to.best = c
	}
}

// Sort puts the cells of the best offers first.
func (x *Search) Sort(thrifty bool) {
	for i := range x.cells {
		for k, d := range x.cells[i].domains {
			n, _ := slices.BinarySearch(x.spread[k].Domains, d)
			x.cells[i].at = append(x.cells[i].at, n)
		}
	}
	slices.SortFunc(x.cells, func(a, b cell) int { return match.Compare(a.best, b.best, thrifty) })
}

// Fail says that of the places that were found last those of the first n replicas do not fit
// together in earnest: no more go next to them.
func (x *Search) Fail(n int) {
	counts := make([]int, len(x.cells))
	for _, k := range x.at[:n] {
		counts[k]++
	}
	x.failed = append(x.failed, counts)
}

// Find is the domains for each of n replicas, nil when there are none or they
// were not found within bounds.
func (x *Search) Find(n int) [][]string {
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
func (x *Search) seat(n int) bool {
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
func (x *Search) holds(counts []int) bool {
	for k, n := range counts {
		if x.taken[k] < n {
			return false
		}
	}
	return true
}

// breaks reports whether one more replica in a cell would break a rule.
func (x *Search) breaks(k int) bool {
	for i, at := range x.cells[k].at {
		if rule := &x.spread[i]; rule.Refuses(rule.Used[at]) {
			return true
		}
	}
	return false
}

// book counts n more replicas in a cell.
func (x *Search) book(k, n int) {
	x.taken[k] += n
	for i, at := range x.cells[k].at {
		x.spread[i].Used[at] += n
		x.spread[i].Sum()
	}
}
