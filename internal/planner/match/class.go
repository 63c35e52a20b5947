package match

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lacking"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// MaxNext is how many runners-up Best names.
const MaxNext = 3

// Candidate is an offer that has every fact a request demands.
type Candidate struct {
	Offer *inventory.Offer
	*Pricing

	// Fails is what it fails at the moment, "" when it fits; Score, and
	// Resources, the term of it, hold when it fits.
	Fails            string
	Score, Resources float64
	// Fills decides between equal prices and scores: how little it strands of cards that are
	// sold in parts, 0 for others (draft.RulesStranded).
	Fills float64
	// Scales: it fits only because its offer can grow. Unasked: it has accelerators that
	// are not asked for.
	Scales, Unasked bool
}

// Class is what a request comes to on every offer. Ten thousand intents have a
// few dozen classes, and a placement changes one offer: a class is made once and
// then only looks again at offers that were touched since. Where classes differ so
// much that they exceed the memory for them, those not asked for the longest are kept
// without what they found on each offer, until they are asked again (kept.go).
type Class struct {
	Request *Request
	// Candidates are the offers that fail no fact, by provider and name. They, and all
	// that is counted of them, are valid after a Refresh and until the next Trim.
	Candidates []Candidate
	// table is which fact each offer fails, as of version; failing counts candidates by
	// what they fail now; Fitting are the others.
	table   *lacking.Table
	version uint64
	failing map[string]int
	Fitting int
	// Affordable are the candidates that pass money, Usable those of them that
	// are large enough when nothing else is there, packed those that sell parts of
	// cards.
	Affordable, Usable, packed int
	// counts grows whenever one of these does; summed is their sum, as of
	// summedAt.
	counts, summedAt int
	summed           map[string]int
	kept
	// seen is how far into the round's list of touched offers it has looked,
	// altered how far into that of those that report something else; used is the
	// last round that asked for it.
	seen, altered int
	used          uint64
	// Least is what no candidate that passes money goes below.
	Least Floor
	// Cheapest is the least peak price of a candidate that passes money.
	Cheapest quantity.Micro
	// ranked are the candidates that fit, by score and by price; nil until asked twice:
	// to look through all once is less work than to order them.
	ranked [2]*ranking
	// priciest is the place in Candidates of the most expensive that fits, as of when it was last
	// asked for and refreshed since; below 0: none, or not known.
	priciest int32
	// priced is ByPrice, nil until asked.
	priced []int32
	// top are the best, for the caller of Best.
	top [1 + MaxNext]*Candidate
	// Memo is what whoever asks remembers of it; it is forgotten with the class.
	Memo any
}

// Floor is the least of what candidates take.
type Floor struct {
	MilliCards, CPU, Memory int64
	Peak                    quantity.Micro
}

// Of is an offer as a candidate; nil when it fails a fact.
func (s *Class) Of(o *inventory.Offer) *Candidate {
	if at := s.table.At[o.Index]; at >= 0 {
		return &s.Candidates[at]
	}
	return nil
}

// Lack is the number of the fact that an offer fails, among Lacks, by what the class knows
// of it; -1 for none.
func (s *Class) Lack(in *inventory.Inventory, o *inventory.Offer) int {
	if at := s.table.At[o.Index]; at < 0 && len(in.Altered(s.altered)) == 0 {
		return int(-1 - at)
	}
	return -1
}

// Lacks are the facts that offers fail.
func (s *Class) Lacks() []string { return s.table.Facts }

// Class is the class of what is asked for, to be refreshed, or sketched. Intents that
// ask for the same share one.
func (m *Matcher) Class(a *Ask) *Class {
	key := m.Key(a)
	s := m.classes[string(key)]
	if s == nil || !m.catchUp(s) {
		name := string(key)
		m.unlist(s)
		s = m.newClass(m.Request(a))
		s.name, m.classes[name] = name, s
	}
	return s
}

// Key is the key of its requests.
func (s *Class) Key() string { return s.name }

// Packs reports whether places are mostly chosen by how little of cards that are
// sold in parts they strand (fragments.go).
func (s *Class) Packs() bool {
	return s.Request.Weights.of[termResources] > 0 && 2*s.packed > s.Affordable
}

// catchUp looks again at the offers that report something else since the class
// last looked, and reports whether that was enough: what changes which offers
// are candidates, or what one costs, changes the scores of all.
func (m *Matcher) catchUp(s *Class) bool {
	if !s.listed {
		return len(m.inventory.Altered(s.altered)) == 0
	}
	// Once an offer has a partition, what it fails is each request's own (factsKey).
	if s.table.Shared() && (m.traits.steps || !s.table.Follow(m.inventory, s.Request.failedBy(m))) {
		return false
	}
	for _, a := range m.inventory.Altered(s.altered) {
		if !caughtUp(m, s, a) {
			return false // and is asked again: a class that is replaced on trial comes back
		}
		s.altered++
	}
	if s.version != s.table.Version {
		s.version = s.table.Version
		s.counts++
	}
	return true
}

// caughtUp is catchUp with one alteration.
func caughtUp(m *Matcher, s *Class, a inventory.Alteration) bool {
	if s.table.At[a.Offer] >= 0 && !a.UseOnly {
		return false
	}
	if s.table.Shared() || a.UseOnly && !s.Request.readsUse {
		return true
	}
	return s.table.Change(a.Offer, m.FailsFact(s.Request, m.inventory.Offers()[a.Offer]))
}

// lower takes candidates in.
func (f *Floor) lower(x *Pricing) {
	f.MilliCards = min(f.MilliCards, x.MilliCards)
	f.CPU, f.Memory = min(f.CPU, x.Size.At(quantity.CPU)), min(f.Memory, x.Size.At(quantity.Memory))
	f.Peak = min(f.Peak, x.Quote.Peak)
}

// look decides what a candidate fails now, and its score.
func (m *Matcher) look(s *Class, c *Candidate) {
	c.Fails = m.FailsCapacity(s.Request, c.Offer, c.Size)
	if c.Fails == "" {
		c.Fails = c.FailsMoney
	}
	if c.Fails == "" {
		c.Resources = m.Resources(s.Request, c.Offer, c.Size, nil, nil)
		c.Score = s.Request.Weights.Score(c)
		if m.facts.LooksAhead && c.Offer.Cards() != nil {
			c.Fills = c.Resources
		}
		c.Scales = c.Offer.Scales(c.Size) || m.needsNode(s.Request, c.Offer, c.Size)
	}
}

// Refresh looks again at the offers that were touched since the class last
// looked, at all of them where it has no list of them.
func (m *Matcher) Refresh(s *Class) {
	s.used = m.Round
	m.asks++
	if s.asked = m.asks; !s.listed {
		s.list(m)
		return
	}
	touched := m.inventory.Touched(s.seen)
	if s.seen += len(touched); len(s.Candidates) == 0 {
		return
	}
	for _, o := range touched {
		i := s.table.At[o]
		if i < 0 {
			continue
		}
		c := &s.Candidates[i]
		was := c.Fails
		m.look(s, c)
		s.recount(was, c.Fails)
		switch {
		case s.priciest == i && c.Fails != "":
			s.priciest = -1
		case s.priciest >= 0 && was != "" && s.costsMore(c, &s.Candidates[s.priciest]):
			s.priciest = i
		}
		for _, k := range s.ranked {
			if k != nil && (was == "" || c.Fails == "") {
				k.update(s.Candidates, i)
			}
		}
	}
}

// costsMore reports whether a candidate fits and costs more than another that does;
// of equals the first by reference counts as the more expensive.
func (s *Class) costsMore(a, b *Candidate) bool {
	if a.Fails != "" || a.Vague {
		return false
	}
	if a.Quote.Now != b.Quote.Now {
		return a.Quote.Now > b.Quote.Now
	}
	return b.Offer.Index > a.Offer.Index
}

// MostExpensiveBut is the most expensive candidate that fits, other than one that was chosen
// and may have been made to fit; nil where its price is not known. Data's
// transfer is left out, as it is from a contract's price.
func (s *Class) MostExpensiveBut(chosen *Candidate) *Candidate {
	if s.priciest < 0 {
		for i := range s.Candidates {
			c := &s.Candidates[i]
			if c.Fails == "" && !c.Vague && (s.priciest < 0 || s.costsMore(c, &s.Candidates[s.priciest])) {
				s.priciest = int32(i)
			}
		}
	}
	switch {
	case chosen.Vague:
		return nil
	case s.priciest < 0 || s.Candidates[s.priciest].Quote.Now < chosen.Quote.Now:
		return chosen
	}
	return &s.Candidates[s.priciest]
}

// recount moves a candidate from what it failed to what it fails.
func (s *Class) recount(was, now string) {
	if was == now {
		return
	}
	s.counts++
	if was == "" {
		s.Fitting--
	} else if s.failing[was]--; s.failing[was] == 0 {
		delete(s.failing, was)
	}
	if now == "" {
		s.Fitting++
	} else {
		s.failing[now]++
	}
}

// Changes grows whenever something else fits, or fails for another reason.
func (s *Class) Changes() int { return s.counts }

// Rejected counts every offer that does not fit, by the first requirement it
// fails. It must not be modified.
func (s *Class) Rejected() map[string]int {
	if len(s.failing) == 0 {
		return s.table.Sum()
	}
	if s.summed == nil || s.summedAt != s.counts {
		s.summed, s.summedAt = maps.Clone(s.table.Counts), s.counts
		for req, n := range s.failing {
			s.summed[req] += n
		}
	}
	return s.summed
}

// maxRefused is after how many of the best that a limit forbids all candidates
// are looked through in a row, which is then faster than their order.
const maxRefused = 64

// Best is the best candidate that is admitted, and the next three, until it is
// asked again.
func (s *Class) Best(admit func(*Candidate) bool, thrifty bool) (best *Candidate, next []*Candidate) {
	if s.Fitting == 0 {
		return nil, nil
	}
	if !s.once[order(thrifty)] {
		s.once[order(thrifty)] = true
		n := s.scan(admit, thrifty)
		if n == 0 {
			return nil, nil
		}
		return s.top[0], s.top[1:n]
	}
	n, refused := 0, 0
	s.byRank(thrifty).walk(s.Candidates, func(c *Candidate) bool {
		if !admit(c) {
			refused++
			return refused < maxRefused
		}
		s.top[n] = c
		n++
		return n < len(s.top)
	})
	if refused == maxRefused {
		n = s.scan(admit, thrifty)
	}
	if n == 0 {
		return nil, nil
	}
	return s.top[0], s.top[1:n]
}

// Walk calls f with the candidates that fit, the best by score first, until it returns false.
// Nothing may change meanwhile, and walks do not nest.
func (s *Class) Walk(f func(*Candidate) bool) { s.byRank(false).walk(s.Candidates, f) }

// order is where what is kept by score, or by price for thrift, is found.
func order(thrifty bool) int {
	if thrifty {
		return 1
	}
	return 0
}

// byRank is the order of the candidates that fit.
func (s *Class) byRank(thrifty bool) *ranking {
	k := &s.ranked[order(thrifty)]
	if *k == nil {
		*k = newRanking(s.Candidates, thrifty)
	}
	return *k
}

// ByPrice lists the candidates that pass money by what they cost now, fitting
// or not, but for those that could grow, or have accelerators that are not asked for: a
// batch is repaired with what exists, and is there for all who ask.
func (s *Class) ByPrice() []int32 {
	if s.priced != nil {
		return s.priced
	}
	// Few prices differ, and candidates are in the order of their references: so the prices
	// are put in order, and the candidates dealt out by them.
	var prices []*Pricing
	for i := range s.Candidates {
		if p := s.Candidates[i].Pricing; int(p.number) == len(prices) {
			prices = append(prices, p)
		}
	}
	slices.SortFunc(prices, func(a, b *Pricing) int { return cmp.Compare(a.Quote.Current(), b.Quote.Current()) })
	rank, ranks := make([]int32, len(prices)), int32(0)
	for i, p := range prices {
		if i > 0 && p.Quote.Current() != prices[i-1].Quote.Current() {
			ranks++
		}
		rank[p.number] = ranks
	}
	asks := func(c *Candidate) bool { return c.FailsMoney == "" && c.Offer.Growth == nil && !c.Unasked }
	ends := make([]int32, ranks+2) // of a rank, one further
	for i := range s.Candidates {
		if c := &s.Candidates[i]; asks(c) {
			ends[rank[c.number]+1]++
		}
	}
	for i := range ranks + 1 {
		ends[i+1] += ends[i]
	}
	s.priced = make([]int32, ends[ranks+1])
	for i := range s.Candidates {
		if c := &s.Candidates[i]; asks(c) {
			at := &ends[rank[c.number]]
			s.priced[*at] = int32(i) //nolint:gosec // their number
			*at++
		}
	}
	return s.priced
}

// scan finds the best by looking at all candidates, and returns how many there
// are.
func (s *Class) scan(admit func(*Candidate) bool, thrifty bool) (n int) {
	top := &s.top
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Fails != "" || (n == len(top) && !Before(c, top[n-1], thrifty)) || !admit(c) {
			continue
		}
		k := n
		if n < len(top) {
			n++
		} else {
			k = n - 1
		}
		for ; k > 0 && Before(c, top[k-1], thrifty); k-- {
			top[k] = top[k-1]
		}
		top[k] = c
	}
	return n
}
