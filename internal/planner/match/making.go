package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
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
	steps   bool   // of any
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
		var has keys.Buffer
		for i := quantity.Extended; i < len(o.Capacity); i++ {
			switch stands := o.Capacity[i] > o.Growth.At(i); {
			case stands:
				has.Int(int64(i))
			case apart && o.Capacity[i] > 0:
				has.Int(-int64(i))
			}
		}
		k.extended = string(has)
	}
	n, known := t.number[k]
	if !known {
		n = int32(len(t.stepped))
		t.number[k] = n
		t.stepped, t.steps = append(t.stepped, k.stepped), t.steps || k.stepped
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
	key := s.Request.factsKey(m)
	if s.table = m.tables.Find(key, m.inventory, s.Request.failedBy(m)); s.table == nil {
		s.table = m.tables.New(key, len(offers))
		m.findCandidates(s)
		m.evaluated += int64(len(offers))
	}
	s.version = s.table.Version
	p := newPricer(m, s.Request, len(s.table.Candidates), in)
	if s.Candidates = nil; !sketch {
		s.Candidates = in.candidates(len(s.table.Candidates))
	}
	for at, i := range s.table.Candidates {
		if price := p.of(offers[i], i, !sketch); !sketch {
			s.Candidates[at] = Candidate{Offer: offers[i], Pricing: price, Unasked: m.unasked(s.Request, offers[i])}
		}
	}
	if p.finish(s); !s.sketched {
		s.count(offers, p.said)
	}
	s.sketched = true
}

// count counts candidates, lot by lot.
func (s *Class) count(offers []*inventory.Offer, lots []said) {
	for i := range lots {
		x := &lots[i]
		if x.offers == 0 || x.pricing.FailsMoney != "" {
			continue
		}
		o, n := offers[x.first], int(x.offers)
		s.Affordable += n
		if o.Cards() != nil {
			s.packed += n
		}
		if x.pricing.Size.Within(o.Capacity) {
			s.Usable += n
		}
	}
}

// findCandidates numbers the offers that fail no fact, and notes which the others fail.
func (m *Matcher) findCandidates(s *Class) {
	const nothing = 1 // is lacked; 0: not asked yet
	t, n := s.table, int32(0)
	known, own := make([]int32, len(m.traits.stepped)), s.Request.asksOwnFacts()
	for i, trait := range m.traits.of {
		at := known[trait]
		if at == 0 {
			at = nothing
			if req := m.sharedFact(s.Request, m.inventory.Offers()[i]); req != "" {
				at = t.Lack(req)
			}
			known[trait] = at
		}
		if stepped := m.traits.stepped[trait]; at == nothing && (own || stepped) {
			if req := m.ownFact(s.Request, m.inventory.Offers()[i], stepped); req != "" {
				at = t.Lack(req)
			}
		}
		if at == nothing {
			at = n
			n++
		}
		t.At[i] = at
	}
	t.Count(m.inventory.Alterations())
}

// failedBy is the first fact of a request that an offer fails.
func (w *Request) failedBy(m *Matcher) func(*inventory.Offer) string {
	return func(o *inventory.Offer) string { return m.FailsFact(w, o) }
}

// factsKey is the same for requests that fail the same facts of every offer: it holds all
// that sharedFact looks at. It is "" where some are each offer's own.
func (w *Request) factsKey(m *Matcher) string {
	if w.asksOwnFacts() || m.traits.steps {
		return ""
	}
	var b keys.Buffer
	s := &w.Intent.Spec
	b.Text(inventory.TypeOf(s.FlavorType))
	if len(m.inventory.By(w.Consumer)) > 0 {
		b.Text(w.Consumer)
	}
	b.Int(keys.Flag(w.tenant != nil), keys.Flag(w.accelerated), keys.Flag(s.Placement.AllowAccelerators), keys.Flag(w.GPU != nil), int64(len(w.extended)))
	if w.tenant != nil {
		b.Texts(w.tenant.Providers.Allow)
		b.Texts(w.tenant.Providers.Deny)
	}
	p := &s.Placement
	for _, list := range [...][]string{p.Providers.Allow, p.Providers.Deny, p.Regions, p.Zones, p.Architectures} {
		b.Texts(list)
	}
	for _, i := range w.extended {
		b.Int(int64(i))
	}
	if g := w.GPU; g != nil {
		b.Texts(g.Models)
		b.Text(g.vendor, g.architecture, g.tier, g.interconnect, g.Profile, g.Sharing)
		b.Int(g.Count, g.Share, g.Memory.Min.Int64(), g.Memory.Max.Int64(), int64(g.capability))
	}
	return string(b)
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
