package alike

import (
	"encoding/binary"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Numbers are the numbers of all offers of an inventory, by each fact that was asked for.
type Numbers struct {
	offers int
	facts  map[string]*column
	sets   map[string]*Set
}

// New numbers so many offers.
func New(offers int) *Numbers {
	return &Numbers{offers: offers, facts: map[string]*column{}, sets: map[string]*Set{}}
}

// column are numbers of offers by their index, 0 where nobody asked yet, and of values.
type column struct {
	of    []int32
	known map[string]int32
	next  int32
}

func newColumn(offers int) column {
	return column{of: make([]int32, offers), known: map[string]int32{}}
}

// number is that of a value, a new one for one that was not seen, or is not known.
func (c *column) number(value []byte, known bool) int32 {
	if n, seen := c.known[string(value)]; seen && known {
		return n
	}
	c.next++
	if known {
		c.known[string(value)] = c.next
	}
	return c.next
}

// Set numbers offers by some facts together.
type Set struct {
	column
	numbers *Numbers
	facts   []string
	columns []*column
	buffer  []byte
}

// Of is the set of some facts.
func (n *Numbers) Of(facts []string) *Set {
	key := strings.Join(facts, "\n")
	s := n.sets[key]
	if s == nil {
		s = &Set{column: newColumn(n.offers), numbers: n, facts: facts}
		for _, fact := range facts {
			c := n.facts[fact]
			if c == nil {
				made := newColumn(n.offers)
				c = &made
				n.facts[fact] = c
			}
			s.columns = append(s.columns, c)
		}
		n.sets[key] = s
	}
	return s
}

// Number is that of an offer, 1 at the least.
func (s *Set) Number(o *inventory.Offer) int32 {
	if n := s.of[o.Index]; n != 0 {
		return n
	}
	var key []byte
	for i, c := range s.columns {
		if c.of[o.Index] == 0 {
			var known bool
			s.buffer, known = celenv.ValueOf(s.buffer[:0], s.facts[i], o.Resolved(), o.Cluster)
			c.of[o.Index] = c.number(s.buffer, known)
		}
		key = binary.AppendUvarint(key, uint64(c.of[o.Index])) //nolint:gosec // above nothing
	}
	n := s.number(key, true)
	s.of[o.Index] = n
	return n
}

// In reports whether a set is one of these numbers.
func (s *Set) In(n *Numbers) bool { return s.numbers == n }

// Forget notes that an offer may report something else.
func (n *Numbers) Forget(o *inventory.Offer) {
	for _, c := range n.facts {
		c.of[o.Index] = 0
	}
	for _, s := range n.sets {
		s.of[o.Index] = 0
	}
}

// Crowded reports whether so many values were seen, of so many facts, that it is better to
// begin again.
func (n *Numbers) Crowded() bool {
	const most, sets = 8, 4096
	if len(n.sets) > sets {
		return true
	}
	for _, s := range n.sets {
		if int(s.next) > most*n.offers+1024 {
			return true
		}
	}
	return false
}
