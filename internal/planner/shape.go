package planner

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// candidate is an offer that has every fact a wish demands.
type candidate struct {
	offer *inventory.Offer
	*pricing

	// req is what it fails at the moment, "" when it fits; score, and the
	// resources term of it, hold when it fits.
	req              string
	score, resources float64
	// scales: it fits only because its offer can grow.
	scales bool
}

// shape is what a wish comes to on every offer. Ten thousand intents have a
// few dozen shapes, and a placement changes one offer: a shape is made once and
// then only looks again at offers that were touched since.
type shape struct {
	wish  *wish
	cands []candidate
	// at is each offer's candidate by the offer's index; -1-n for those that lack
	// fact n of lacks.
	at    []int32
	lacks []string
	// facts counts offers by the fact they lack; failing counts candidates by
	// what they fail now; fitting are the others.
	facts, failing map[string]int
	fitting        int
	// affordable are the candidates that pass money, usable those of them that
	// are large enough when nothing else is there, packed those that sell parts of
	// cards.
	affordable, usable, packed int
	// counts grows whenever one of these does; summed is their sum, as of
	// summedAt.
	counts, summedAt int
	summed           map[string]int
	// seen is how far into the round's list of touched offers it has looked,
	// altered how far into that of those that report something else; used is the
	// last round that asked for it.
	seen, altered int
	used          uint64
	// least is what no candidate that passes money goes below.
	least floor
	// spreads are the domains of the candidates, by key of placement.spread.
	spreads map[string][]string
	// cheapest is the least peak price of a candidate that passes money.
	cheapest quantity.Micro
	// ranked are the candidates that fit, by score and by price; nil until asked.
	ranked [2]*ranking
	// dear is the place in cands of the dearest that fits, as of when it was last
	// asked for and refreshed since; below 0: none, or not known.
	dear int32
	// priced is byPrice, nil until asked.
	priced []int32
	// top are the best, for the caller of best.
	top [4]*candidate
	// failed remembers why nothing fitted.
	failed failedShape
}

// noLimit is more than anything takes.
const noLimit = int64(1) << 60

// floor is the least of what candidates take.
type floor struct {
	milliCards, cpu, memory int64
	peak                    quantity.Micro
}

// of is an offer as a candidate; nil when it lacks a fact.
func (s *shape) of(o *inventory.Offer) *candidate {
	if at := s.at[o.Index]; at >= 0 {
		return &s.cands[at]
	}
	return nil
}

// shapeOf is the shape of one alternative of a job, up to date. Intents that
// ask for the same share one.
func (r *round) shapeOf(j *job, alt int) *shape {
	s := j.shapes[alt]
	if s == nil {
		key := r.shapeKey(j, alt)
		s = r.shapes[string(key)]
		if s == nil || !r.catchUp(s) {
			name := string(key)
			w := r.wishOf(j, j.alternatives()[alt])
			w.replicas, w.money, w.seconds = int64(max(j.wanted, 1)), j.purse, j.seconds
			s = r.newShape(w)
			r.shapes[name] = s
		}
		j.shapes[alt] = s
	}
	s.used = r.number
	r.refresh(s)
	return s
}

// packs reports whether places are mostly chosen by how little of cards that are
// sold in parts they strand (fragments.go).
func (s *shape) packs() bool { return s.wish.weights.resources > 0 && 2*s.packed > s.affordable }

// catchUp looks again at the offers that report something else since the shape
// last looked, and reports whether that was enough: what changes which offers
// are candidates, or what one costs, changes the scores of all.
func (r *round) catchUp(s *shape) bool {
	for _, a := range r.inventory.Altered(s.altered) {
		at := s.at[a.Offer]
		if at >= 0 && !a.UseOnly {
			return false
		}
		s.altered++
		if a.UseOnly && s.wish.where == nil && len(s.wish.policies) == 0 {
			continue // all else looks at what does not change with use
		}
		req := r.fact(s.wish, r.inventory.Offers()[a.Offer])
		switch {
		case at >= 0 && req == "":
		case at >= 0 || req == "":
			return false
		case s.lacks[-1-at] != req:
			was := s.lacks[-1-at]
			if s.facts[was]--; s.facts[was] == 0 {
				delete(s.facts, was)
			}
			s.at[a.Offer] = s.lacking(req)
			s.facts[req]++
			s.counts++
		}
	}
	return true
}

// lower takes candidates in.
func (f *floor) lower(x *pricing) {
	f.milliCards = min(f.milliCards, x.milliCards)
	f.cpu, f.memory = min(f.cpu, x.size.At(quantity.CPU)), min(f.memory, x.size.At(quantity.Memory))
	f.peak = min(f.peak, x.quote.peak)
}

// look decides what a candidate fails now, and its score.
func (r *round) look(s *shape, c *candidate) {
	c.req = r.lacks(s.wish, c.offer, c.size)
	if c.req == "" {
		c.req = c.money
	}
	if c.req == "" {
		c.resources = r.resources(s.wish, c.offer, c.size, nil)
		c.score = s.wish.weights.score(c)
		c.scales = c.offer.Scales(c.size)
	}
}

// refresh looks again at the offers that were touched since the shape last
// looked.
func (r *round) refresh(s *shape) {
	touched := r.inventory.Touched(s.seen)
	s.seen += len(touched)
	for _, o := range touched {
		i := s.at[o]
		if i < 0 {
			continue
		}
		c := &s.cands[i]
		was := c.req
		r.look(s, c)
		s.recount(was, c.req)
		switch {
		case s.dear == i && c.req != "":
			s.dear = -1
		case s.dear >= 0 && was != "" && s.dearer(c, &s.cands[s.dear]):
			s.dear = i
		}
		for _, k := range s.ranked {
			if k != nil && (was == "" || c.req == "") {
				k.update(s.cands, i)
			}
		}
	}
}

// dearer reports whether a candidate fits and costs more than another that does;
// of equals the first by reference counts as the dearer.
func (s *shape) dearer(a, b *candidate) bool {
	if a.req != "" || a.vague {
		return false
	}
	if a.quote.now != b.quote.now {
		return a.quote.now > b.quote.now
	}
	return inventory.Compare(b.offer, a.offer) > 0
}

// dearestBeside is the dearest candidate that fits, beside one that was chosen
// and may have been made to fit; nil where its price is not known. Data's
// transfer is left out, as it is from a contract's price.
func (s *shape) dearestBeside(chosen *candidate) *candidate {
	if s.dear < 0 {
		for i := range s.cands {
			c := &s.cands[i]
			if c.req == "" && !c.vague && (s.dear < 0 || s.dearer(c, &s.cands[s.dear])) {
				s.dear = int32(i)
			}
		}
	}
	switch {
	case chosen.vague:
		return nil
	case s.dear < 0 || s.cands[s.dear].quote.now < chosen.quote.now:
		return chosen
	}
	return &s.cands[s.dear]
}

// recount moves a candidate from what it failed to what it fails.
func (s *shape) recount(was, now string) {
	if was == now {
		return
	}
	s.counts++
	if was == "" {
		s.fitting--
	} else if s.failing[was]--; s.failing[was] == 0 {
		delete(s.failing, was)
	}
	if now == "" {
		s.fitting++
	} else {
		s.failing[now]++
	}
}

// rejected counts every offer that does not fit, by the first requirement it
// fails. It must not be modified.
func (s *shape) rejected() map[string]int {
	if s.summed == nil || s.summedAt != s.counts {
		s.summed, s.summedAt = maps.Clone(s.facts), s.counts
		for req, n := range s.failing {
			s.summed[req] += n
		}
	}
	return s.summed
}

// maxRefused is after how many of the best that a limit forbids all candidates
// are looked through in a row, which is then faster than their order.
const maxRefused = 64

// best is the best candidate within limits, and the next three, until it is
// asked again.
func (s *shape) best(l *limits, thrifty bool) (best *candidate, next []*candidate) {
	if s.fitting == 0 || l.below(&s.least) {
		return nil, nil
	}
	n, refused := 0, 0
	s.byRank(thrifty).walk(s.cands, func(c *candidate) bool {
		if l.breaks(c) != "" {
			refused++
			return refused < maxRefused
		}
		s.top[n] = c
		n++
		return n < len(s.top)
	})
	if refused == maxRefused {
		n = s.scan(l, thrifty)
	}
	if n == 0 {
		return nil, nil
	}
	return s.top[0], s.top[1:n]
}

// byRank is the order of the candidates that fit.
func (s *shape) byRank(thrifty bool) *ranking {
	k := &s.ranked[flag(thrifty)]
	if *k == nil {
		*k = newRanking(s.cands, thrifty)
	}
	return *k
}

// byPrice lists the candidates that pass money by what they cost now, fitting
// or not, but for those that could grow: a batch is repaired with what stands.
func (s *shape) byPrice() []int32 {
	if s.priced != nil {
		return s.priced
	}
	s.priced = make([]int32, 0, len(s.cands))
	for i := range s.cands {
		if s.cands[i].money == "" && s.cands[i].offer.Growth == nil {
			s.priced = append(s.priced, int32(i))
		}
	}
	slices.SortFunc(s.priced, func(a, b int32) int {
		x, y := &s.cands[a], &s.cands[b]
		return cmp.Or(cmp.Compare(x.quote.current(), y.quote.current()), inventory.Compare(x.offer, y.offer))
	})
	return s.priced
}

// scan finds the best by looking at all candidates, and says how many there
// are.
func (s *shape) scan(l *limits, thrifty bool) (n int) {
	top := &s.top
	for i := range s.cands {
		c := &s.cands[i]
		if c.req != "" || (n == len(top) && !before(c, top[n-1], thrifty)) || l.breaks(c) != "" {
			continue
		}
		k := n
		if n < len(top) {
			n++
		} else {
			k = n - 1
		}
		for ; k > 0 && before(c, top[k-1], thrifty); k-- {
			top[k] = top[k-1]
		}
		top[k] = c
	}
	return n
}
