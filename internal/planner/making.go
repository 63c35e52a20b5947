package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
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
	// of are those of the offers, by their index, tariffs their tariffs, nil until
	// asked.
	of      []int32
	tariffs []*tariff
}

func newTraits(offers []*inventory.Offer) *traits {
	t := &traits{number: map[trait]int32{}, of: make([]int32, len(offers)), tariffs: make([]*tariff, len(offers))}
	for _, o := range offers {
		t.set(o)
	}
	return t
}

// set notes the trait of an offer that is described otherwise.
func (t *traits) set(o *inventory.Offer) {
	k := trait{
		provider: o.Provider, blocked: o.Blocked, sort: o.Type, architecture: o.Flavor.Spec.Architecture,
		kind: o.CardKind, at: o.Location, stepped: o.Flavor.Spec.Partition != nil,
	}
	if len(o.Capacity) > quantity.Extended {
		var has keyBuffer
		for i := quantity.Extended; i < len(o.Capacity); i++ {
			if o.Capacity[i] > o.Growth.At(i) {
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
	t.of[o.Index], t.tariffs[o.Index] = n, nil
}

// newShape makes what a wish comes to.
func (r *round) newShape(w *wish) *shape {
	s := &shape{wish: w, at: make([]int32, len(r.inventory.Offers())), facts: map[string]int{}, failing: map[string]int{}, dear: -1, seen: r.inventory.Touches(), altered: r.inventory.Alterations()}
	s.cands = make([]candidate, r.findCandidates(s))
	r.looked += int64(len(r.inventory.Offers()))
	p := newPricer(r, w, len(s.cands))
	for i, at := range s.at {
		if at >= 0 {
			o := r.inventory.Offers()[i]
			s.cands[at] = candidate{offer: o, pricing: p.of(o)}
		}
	}
	p.finish(s)
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
			s.affordable++
			if c.offer.Cards() != nil {
				s.packed++
			}
			if c.size.Within(c.offer.Capacity) {
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
			if req := r.common(s.wish, r.inventory.Offers()[i]); req != "" {
				at = s.lacking(req)
			}
			known[t] = at
		}
		if at == nothing && (particular || r.traits.stepped[t]) {
			if req := r.particular(s.wish, r.inventory.Offers()[i]); req != "" {
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
