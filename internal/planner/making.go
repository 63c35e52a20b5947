package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// To make a shape is to ask every offer of the fleet, and mostly to wait for
// memory: offers and what they point to lie anywhere. So what many offers have
// in common is asked of the first of them alone, and the others are told apart
// by a number that lies in a row: traits, of facts; tariffs, of prices.

// trait is all of an offer that round.common looks at, and whether it is sold
// in steps.
type trait struct {
	provider, blocked, sort, architecture string
	// kind of its cards, and which extended resources it has.
	kind     int
	extended string
	at       v1alpha1.Location
	stepped  bool
}

// traits numbers the traits of offers.
type traits struct {
	number  map[trait]int32
	stepped []bool // by number
	// of are those of the offers, by their index.
	of []int32
}

func newTraits(offers int) *traits {
	return &traits{number: map[trait]int32{}, of: make([]int32, offers)}
}

// set notes the trait of an offer that is described otherwise.
func (t *traits) set(o *offer) {
	k := trait{
		provider: o.provider, blocked: o.blocked, sort: o.sort, architecture: o.Flavor.Spec.Architecture,
		kind: o.kind, at: o.Location, stepped: o.Flavor.Spec.Partition != nil,
	}
	if len(o.capacity) > rExtended {
		var has keyBuffer
		for i := rExtended; i < len(o.capacity); i++ {
			if o.capacity[i] > 0 {
				has.int(int64(i))
			}
		}
		k.extended = string(has)
	}
	n, known := t.number[k]
	if !known {
		n = int32(len(t.stepped))
		t.number[k] = n
		t.stepped = append(t.stepped, k.stepped)
	}
	t.of[o.index] = n
}

// newShape makes what a wish comes to.
func (r *round) newShape(w *wish) *shape {
	s := &shape{wish: w, at: make([]int32, len(r.offers)), facts: map[string]int{}, failing: map[string]int{}, dear: -1, seen: len(r.touched), altered: len(r.altered)}
	s.cands = make([]candidate, r.findCandidates(s))
	for i, at := range s.at {
		if at >= 0 {
			o := r.offers[i]
			s.cands[at].offer, s.cands[at].size = o, w.size(o)
		}
	}
	r.price(s)
	s.least = floor{noLimit, noLimit, noLimit, unlimited}
	var failing counts
	for i := range s.cands {
		c := &s.cands[i]
		r.look(s, c)
		if c.req == "" {
			s.fitting++
			if !c.vague && (s.dear < 0 || s.dearer(c, &s.cands[s.dear])) {
				s.dear = int32(i)
			}
		} else {
			failing.count(c.req)
		}
		if c.money == "" {
			s.least.lower(c)
			s.affordable++
			if c.offer.deck != nil {
				s.packed++
			}
			if c.size.within(c.offer.capacity) {
				s.usable++
			}
		}
	}
	failing.into(s.failing)
	return s
}

// findCandidates numbers the offers that lack no fact, counts the others by
// what they lack, and says how many candidates there are.
func (r *round) findCandidates(s *shape) (n int32) {
	const nothing = 1 // is lacked; 0: not asked yet
	known, particular := make([]int32, len(r.traits.stepped)), s.wish.particular()
	var lack []int // by number of the fact
	for i, t := range r.traits.of {
		at := known[t]
		if at == 0 {
			at = nothing
			if req := r.common(s.wish, r.offers[i]); req != "" {
				at = s.lacking(req)
			}
			known[t] = at
		}
		if at == nothing && (particular || r.traits.stepped[t]) {
			if req := r.particular(s.wish, r.offers[i]); req != "" {
				at = s.lacking(req)
			}
		}
		if at < 0 {
			for len(lack) < len(s.lacks) {
				lack = append(lack, 0)
			}
			lack[-1-at]++
			s.at[i] = at
			continue
		}
		s.at[i] = n
		n++
	}
	for i, req := range s.lacks {
		s.facts[req] = lack[i]
	}
	return n
}

// lacking is how at says that an offer lacks a fact.
func (s *shape) lacking(req string) int32 {
	n := slices.Index(s.lacks, req)
	if n < 0 {
		n, s.lacks = len(s.lacks), append(s.lacks, req)
	}
	return int32(-1 - n)
}

// counts counts by a few words, most of which come several times in a row.
type counts []struct {
	word string
	n    int
}

func (c *counts) count(word string) {
	list := *c
	for i := range list {
		if list[i].word == word {
			list[i].n++
			return
		}
	}
	*c = append(list, struct {
		word string
		n    int
	}{word, 1})
}

func (c *counts) into(m map[string]int) {
	for _, x := range *c {
		m[x.word] = x.n
	}
}

// price fills in the candidates' prices and what of money they fail: none of
// it changes during the round.
func (r *round) price(s *shape) {
	w := s.wish
	s.cheapest = unlimited
	var told quotes
	for i := range s.cands {
		c := &s.cands[i]
		r.quoted(&told, w, c)
		if c.money == "" {
			s.cheapest = min(s.cheapest, c.quote.most())
		}
	}
	var dearest micro
	for i := range s.cands {
		c := &s.cands[i]
		if c.money == "" {
			// What the other replicas cost at the least is not there for this one.
			c.money = w.affordable(c.quote, c.size, (w.replicas-1)*int64(s.cheapest))
		}
		if c.money == "" {
			dearest = max(dearest, c.quote.current())
		}
	}
	scale := scaleOf(s)
	for i := range s.cands {
		c := &s.cands[i]
		c.terms = terms{cost: costTerm(c.quote.current(), dearest, c.vague)}
		// A term without weight is no part of any score.
		if w.weights.latency > 0 {
			c.terms.latency = latencyTerm(r.latency(w.consumer, c.offer))
		}
		if w.weights.reliability > 0 {
			c.terms.reliability = reliabilityTerm(c.offer.Flavor.Spec.Properties)
		}
		goalTerms(w, c, &scale)
	}
}

// quotes are what was said of tariffs, by their numbers.
type quotes []struct {
	tariff *tariff
	size   *int64 // the first of it: sizes are shared
	region string
	quote  quote
	money  string
	vague  bool
}

// quoted is choosePrice, asked once for offers that have tariff and size in
// common, and whether a price is missing.
func (r *round) quoted(told *quotes, w *wish, c *candidate) {
	t := r.tariffOf(c.offer)
	if 4*len(r.tariffs) > len(r.offers) { // next to nobody has a tariff in common
		r.choosePrice(w, c)
		c.vague = t.unpriced || r.transferUnknown(w, c.offer)
		return
	}
	for len(*told) <= t.number {
		*told = append(*told, make(quotes, t.number+1)...)
	}
	q, region := &(*told)[t.number], ""
	if w.moves() {
		region = c.offer.Location.Region
	}
	// A flat price is shared out by the offer's capacity.
	if t.onDemand.flat > 0 || q.tariff != t || q.size != &c.size[0] || q.region != region {
		r.choosePrice(w, c)
		q.tariff, q.size, q.region, q.quote, q.money = t, &c.size[0], region, c.quote, c.money
		q.vague = t.unpriced || r.transferUnknown(w, c.offer)
	}
	c.quote, c.money, c.vague = q.quote, q.money, q.vague
}

// choosePrice takes the cheapest acceptable price class that the intent can
// afford, else says what of money fails.
func (r *round) choosePrice(w *wish, c *candidate) {
	t := r.tariffOf(c.offer)
	transfer, known := r.transfer(w, c.offer)
	c.quote.transfer = transfer
	if !known && w.money.limited {
		c.money = ReqTransfer
		return
	}
	if t.why != "" {
		c.quote.class = v1alpha1.OnDemand
		if !t.unpriced || w.money.limited {
			c.money = ReqPrice
		}
		return
	}
	c.money = ReqPurchase
	for _, class := range w.purchase {
		q, sold := r.quoteFor(c.offer, class, c.size, w.seconds)
		if !sold {
			continue
		}
		q.transfer = transfer
		fails := w.affordable(q, c.size, 0)
		better := c.money == ReqPurchase || (fails == "") != (c.money == "") && fails == "" || (fails == "") == (c.money == "") && q.now < c.quote.now
		if better {
			c.quote, c.money = q, fails
		}
	}
}

// affordable is the limit of the intent's budget that a price breaks, when
// others micro an hour go to its other replicas.
func (w *wish) affordable(q quote, size vec, others int64) string {
	limit, name := w.money.hourly, ReqMaxHourly
	if q.class == v1alpha1.Spot {
		limit, name = w.money.hourlySpot, ReqMaxHourlySpot
	}
	if q.most()+micro(others) > limit {
		return name
	}
	if n := size.at(rGPU); n > 0 && w.money.perGPU < unlimited && int64(q.peak) > int64(w.money.perGPU)*n {
		return ReqMaxHourlyPerGPU
	}
	if w.money.total < unlimited {
		// Open-ended intents run until the money is spent: a minute at the least.
		if (q.most() + micro(others)).forSeconds(max(w.seconds, 60)) > w.money.total {
			return ReqMaxTotal
		}
	}
	return ""
}
