package match

import (
	"cmp"
	"maps"
	"slices"
	"unsafe"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lacking"
)

// What classes know of each offer is what a round with many of them consists of: some 70
// bytes for each pair of a class and an offer, 7 GB for ten thousand of both. So the lists
// of classes share a budget in bytes. A class without its list stays what it is, and
// finds the same again when it is asked: what is evicted changes no plan, and costs a look
// at every offer.

// DefaultBudget is how many bytes the lists of all classes may take between two turns.
const DefaultBudget = 192 << 20

// buffers are what a list lies in; those of an evicted class are used again.
type buffers struct {
	cands  []Candidate
	blocks [][]Pricing
	used   int // blocks
}

// candidates is room for n, which need not be empty.
func (b *buffers) candidates(n int) []Candidate {
	if cap(b.cands) < n {
		b.cands = make([]Candidate, n)
	}
	return b.cands[:n:n]
}

// pricings is room for n that are appended.
func (b *buffers) pricings(n int) []Pricing {
	if b.used == len(b.blocks) {
		b.blocks = append(b.blocks, nil)
	}
	if cap(b.blocks[b.used]) < n {
		b.blocks[b.used] = make([]Pricing, 0, n)
	}
	b.used++
	return b.blocks[b.used-1][:0]
}

// bytes is what they take, with two orders of the candidates.
func (b *buffers) bytes() int64 {
	const perOrder, orders = 8, 2
	n := int64(cap(b.cands)) * (int64(unsafe.Sizeof(Candidate{})) + perOrder*orders)
	for _, block := range b.blocks {
		n += int64(cap(block)) * int64(unsafe.Sizeof(Pricing{}))
	}
	return n
}

// Fixed is a copy of what of a candidate does not change, which outlives its class's list.
func (c *Candidate) Fixed() *Candidate {
	price := *c.Pricing
	return &Candidate{Offer: c.Offer, Pricing: &price, Unasked: c.Unasked}
}

// lists are the classes that have one.
type lists struct {
	// Budget in bytes; what Trim leaves is not above it.
	Budget int64
	held   int64
	of     map[*Class]*buffers
	// tables are what classes share of which fact each offer fails.
	tables lacking.Tables
	spare  []*buffers
	// sketch is what classes are sketched in.
	sketch buffers
	// asks numbers what was asked for.
	asks uint64
}

// Lasts reports whether a class is still that of its requests, and up to date but for a
// Refresh: it then counts as asked for in this round.
func (s *Class) Lasts(m *Matcher) bool {
	if !s.listed || m.classes[s.name] != s || !m.catchUp(s) {
		return false
	}
	s.used = m.Round
	return true
}

// kept is what of a class is in memory.
type kept struct {
	// name is its key.
	name string
	// listed: there are Candidates and what follows from them. sketched: what is counted
	// of them without regard to what is free is known.
	listed, sketched bool
	// made is when: at whatever time it is listed again, its prices are of then.
	made v1alpha1.Time
	// once: the best was asked for, by score or by price.
	once [2]bool
	// bytes are what its list takes, asked is when it was last asked for.
	bytes int64
	asked uint64
}

// list looks at every offer for a class.
func (s *Class) list(m *Matcher) {
	in := &buffers{}
	if n := len(m.spare); n > 0 {
		in, m.spare = m.spare[n-1], m.spare[:n-1]
		in.used = 0
	}
	if s.describe(m, in, false); len(s.Candidates) == 0 {
		m.spare, in = append(m.spare, in), &buffers{}
	}
	s.listed, s.failing, s.Fitting, s.priciest = true, map[string]int{}, 0, -1
	s.seen, s.altered = m.inventory.Touches(), m.inventory.Alterations()
	var failing counts
	for i := range s.Candidates {
		c := &s.Candidates[i]
		m.look(s, c)
		if c.Fails != "" {
			failing.count(c.Fails)
			continue
		}
		s.Fitting++
		if !c.Vague && (s.priciest < 0 || s.costsMore(c, &s.Candidates[s.priciest])) {
			s.priciest = int32(i) //nolint:gosec // their number
		}
	}
	failing.into(s.failing)
	s.counts++
	s.bytes = in.bytes()
	m.held += s.bytes + s.table.Use()
	m.of[s] = in
}

// Sketch finds what a class comes to without regard to what is free: Affordable, Usable,
// Cheapest, Least and Packs. It lists it where there is room for that, as it will be asked
// for more.
func (s *Class) Sketch(m *Matcher) {
	switch room := int64(len(m.inventory.Offers())) * int64(unsafe.Sizeof(Candidate{})); {
	case s.sketched:
	case m.held+room <= m.Budget/2:
		m.Refresh(s)
	default:
		m.sketch.used = 0
		s.describe(m, &m.sketch, true)
		m.tables.Recycle(s.table)
		s.table, s.Candidates = nil, nil
	}
}

// Trim takes the lists from the classes that were not asked for the longest, until the
// others keep to the budget. Nobody may hold a Candidate of a class across it.
func (l *lists) Trim() {
	if l.held <= l.Budget {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(l.of), func(a, b *Class) int { return cmp.Compare(a.asked, b.asked) })
	for _, s := range oldest {
		if l.held <= l.Budget-l.Budget/16 {
			return
		}
		l.spare = append(l.spare, l.of[s])
		l.unlist(s)
		l.tables.Recycle(s.table)
		s.listed, s.table, s.Candidates, s.failing, s.summed = false, nil, nil, nil, nil
		s.ranked, s.once, s.priced, s.top = [2]*ranking{}, [2]bool{}, nil, [1 + MaxNext]*Candidate{}
	}
}

// unlist no longer counts a class's list; nil has none.
func (l *lists) unlist(s *Class) {
	if s != nil && s.listed {
		l.held -= s.bytes + s.table.Leave()
		delete(l.of, s)
		s.bytes = 0
	}
}

// keepListed forgets the classes without a list, and the lists of those that are
// forgotten.
func (l *lists) keepListed(classes map[string]*Class) {
	maps.DeleteFunc(classes, func(_ string, s *Class) bool { return !s.listed })
	kept := make(map[*Class]*buffers, len(classes))
	l.tables.Recount()
	l.held, l.spare, l.sketch = 0, nil, buffers{}
	for _, s := range classes {
		if in := l.of[s]; in != nil {
			kept[s] = in
			l.held += s.bytes + s.table.Use()
		}
	}
	l.of = kept
	l.tables.Drop()
}
