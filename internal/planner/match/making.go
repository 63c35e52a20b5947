package match

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// To make a class is to ask every offer of the fleet, and mostly to wait for
// memory: offers and what they point to lie anywhere. So what many offers have
// in common is asked of the first of them alone, and the others are distinguished
// by a number that lies in a row: traits, of facts; tariffs, of prices.

// trait is all of an offer that sharedFact looks at, and whether it is sold
// in steps.
type trait struct {
	provider, blocked, sort, architecture string
	// kind of its cards, and which extended resources it has, or could grow.
	kind     int
	extended string
	at       v1alpha1.Location
	stepped  bool
	// accelerators: it has some.
	accelerators bool
}

// offerClasses numbers the traits of offers.
type offerClasses struct {
	number  map[trait]int32
	stepped []bool // by number
	// of are those of the offers, by their index, tariffs their tariffs, nil until
	// asked.
	of      []int32
	tariffs []*Tariff
}

// set notes the trait of an offer that is described otherwise. apart: one that could
// grow an extended resource is told from one that lacks it.
func (t *offerClasses) set(o *inventory.Offer, accelerators, apart bool) {
	k := trait{
		provider: o.Provider, blocked: o.Blocked, sort: o.Type, architecture: o.Flavor.Spec.Architecture,
		kind: o.CardKind, at: o.Location, stepped: o.Flavor.Spec.Partition != nil, accelerators: accelerators,
	}
	if len(o.Capacity) > quantity.Extended {
		var has keyBuffer
		for i := quantity.Extended; i < len(o.Capacity); i++ {
			switch stands := o.Capacity[i] > o.Growth.At(i); {
			case stands:
				has.int(int64(i))
			case apart && o.Capacity[i] > 0:
				has.int(-int64(i))
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
	t.of[o.Index], t.tariffs[o.Index] = n, nil
}

// newClass is a class of which nothing is known yet.
func (m *Matcher) newClass(w *Request) *Class {
	return &Class{Request: w, priciest: -1, altered: m.inventory.Alterations(), kept: kept{made: m.facts.Now}}
}

// describe finds the candidates of a class and prices them, in the room that is given,
// and counts what of that does not depend on what is free. A sketch lists no candidates.
func (s *Class) describe(m *Matcher, in *buffers, sketch bool) {
	now := m.facts.Now
	m.facts.Now = s.made
	defer func() { m.facts.Now = now }()
	offers := m.inventory.Offers()
	s.at = in.places(len(offers))
	s.facts, s.lacks = map[string]int{}, s.lacks[:0]
	n := int(m.findCandidates(s))
	m.evaluated += int64(len(offers))
	p, prices := newPricer(m, s.Request, n, in), in.priced[:0]
	if s.Candidates = nil; !sketch {
		s.Candidates = in.candidates(n)
	}
	for i, at := range s.at {
		switch {
		case at < 0:
		case sketch:
			prices = append(prices, p.of(offers[i], i))
		default:
			s.Candidates[at] = Candidate{Offer: offers[i], Pricing: p.of(offers[i], i), Unasked: m.unasked(s.Request, offers[i])}
		}
	}
	p.finish(s)
	in.priced = prices
	if !s.sketched {
		s.count(offers, prices)
	}
	s.sketched = true
}

// count counts candidates, which are listed, or priced in the order of the offers.
func (s *Class) count(offers []*inventory.Offer, prices []*Pricing) {
	for i, at := range s.at {
		if at < 0 {
			continue
		}
		o, price := offers[i], (*Pricing)(nil)
		if s.Candidates != nil {
			price = s.Candidates[at].Pricing
		} else {
			price = prices[at]
		}
		if price.FailsMoney != "" {
			continue
		}
		s.Affordable++
		if o.Cards() != nil {
			s.packed++
		}
		if price.Size.Within(o.Capacity) {
			s.Usable++
		}
	}
}

// findCandidates numbers the offers that fail no fact, counts the others by
// what they fail, and returns how many candidates there are.
func (m *Matcher) findCandidates(s *Class) (n int32) {
	const nothing = 1 // is lacked; 0: not asked yet
	known, own := make([]int32, len(m.traits.stepped)), s.Request.asksOwnFacts()
	var lack []int // by number of the fact
	for i, t := range m.traits.of {
		at := known[t]
		if at == 0 {
			at = nothing
			if req := m.sharedFact(s.Request, m.inventory.Offers()[i]); req != "" {
				at = s.lacking(req)
			}
			known[t] = at
		}
		if at == nothing && (own || m.traits.stepped[t]) {
			if req := m.ownFact(s.Request, m.inventory.Offers()[i]); req != "" {
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

// lacking is how at records that an offer fails a fact.
func (s *Class) lacking(req string) int32 {
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
