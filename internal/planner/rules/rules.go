package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Set is what a replica's place must respect apart from the offer itself: where
// the intent's other replicas are (placement.spread), and where other intents
// of its tenant do (placement.together, placement.apart). They change with
// every placement, so that classes, which many intents share, know nothing of
// them: they are asked with the limits, after capacity and money.
type Set struct {
	Spread []Spread
	// seat are the domains by each of spread that the replica was given with all
	// others in view (package seating), nil for any.
	seat []string
	// Together are the intents to be placed with, and their providers; by name.
	Together []Neighbour
	// Apart names, for a provider, the intent that must not be met there.
	Apart map[string]string
	// Within are the domains that replicas share.
	Within []domain.Rule
	// Holds reports whether the nodes of the domains that replicas share hold a size of an
	// offer; nil: domains are not of nodes.
	Holds func(o *inventory.Offer, size quantity.Vector) bool
	// Nowhere is why there is none for those that belong together; "" where there may be.
	Nowhere string
	// Only is the provider that a unit of intents is being tried on, "" for any.
	Only string
}

// Neighbour is another intent and the providers of its contracts.
type Neighbour struct {
	Name      string
	Providers []string
}

// Breaks is the rule that an offer breaks, "" for none.
func (x *Set) Breaks(o *inventory.Offer) string {
	if x == nil {
		return ""
	}
	if x.Nowhere != "" || x.Only != "" && o.Provider != x.Only {
		return match.ReqTogether
	}
	for i := range x.Together {
		if !slices.Contains(x.Together[i].Providers, o.Provider) {
			return match.ReqTogether
		}
	}
	if x.Apart[o.Provider] != "" {
		return match.ReqApart
	}
	for i := range x.Within {
		if x.Within[i].Breaks(o) {
			return match.ReqWithin
		}
	}
	for i := range x.Spread {
		if x.Spread[i].Breaks(o) || x.seat != nil && x.seat[i] != x.Spread[i].DomainOf(o) {
			return match.ReqSpread
		}
	}
	return ""
}

// Lacks is the rule that an offer's nodes break for a size, "" for none.
func (x *Set) Lacks(o *inventory.Offer, size quantity.Vector) string {
	if x != nil && x.Holds != nil && !x.Holds(o, size) {
		return match.ReqWithin
	}
	return ""
}

// Seated are the rules for the i-th of replicas with seats, if there are any.
func (x *Set) Seated(seats [][]string, i int) *Set {
	if seats != nil {
		x.seat = seats[i]
	}
	return x
}

// Detail explains with names and numbers which rule an offer breaks.
func (x *Set) Detail(o *inventory.Offer, req string) string {
	if x == nil {
		return ""
	}
	switch req {
	case match.ReqTogether:
		if x.Nowhere != "" {
			return x.Nowhere
		}
		for i := range x.Together {
			if n := &x.Together[i]; !slices.Contains(n.Providers, o.Provider) {
				return fmt.Sprintf("%s is on %s", n.Name, strings.Join(n.Providers, ", "))
			}
		}
		return "not all of those that belong together fit on " + o.Provider
	case match.ReqApart:
		return x.Apart[o.Provider] + " is on " + o.Provider
	case match.ReqWithin:
		for i := range x.Within {
			if x.Within[i].Breaks(o) {
				return x.Within[i].Detail(o)
			}
		}
		if x.Holds != nil {
			return "too little is free of its nodes in the " + x.Within[0].String() + " that its replicas share"
		}
	case match.ReqSpread:
		for i := range x.Spread {
			if x.Spread[i].Breaks(o) {
				return x.Spread[i].detail(o)
			}
		}
	}
	return ""
}

// Broken is how the first offer that only a rule keeps out breaks it; "" for
// what is no rule.
func (x *Set) Broken(s *match.Class, rejects func(*match.Candidate) string, req string) string {
	if x == nil {
		return ""
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Fails == "" && rejects(c) == req {
			if text := x.Detail(c.Offer, req); text != "" {
				return req + ": " + text
			}
			return ""
		}
	}
	return ""
}

// Relations are the intents that must be together, over any number of steps,
// and apart, each from both sides: the one that comes second follows.
type Relations struct {
	Together, Apart map[[2]string][]string
	kinds           map[[2]string][]domain.Kind
}

// Kinds are the domains that those whom an intent belongs together with have to share, each
// kind once; of tells of one of them. Who that is stands for the round.
func (x *Relations) Kinds(tenant, name string, of func(name string) (domain.Kind, bool)) []domain.Kind {
	k := [2]string{tenant, name}
	out, known := x.kinds[k]
	if known || len(x.Together[k]) == 0 {
		return out
	}
	for _, other := range x.Together[k] {
		if w, is := of(other); is && w.Required && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	x.kinds[k] = out
	return out
}

// RelationsOf are the intents that are together or apart, by name, of those that name
// others (relatives).
func RelationsOf(r *draft.Draft, relatives map[[2]string]bool) *Relations {
	out := &Relations{Together: map[[2]string][]string{}, Apart: map[[2]string][]string{}, kinds: map[[2]string][]domain.Kind{}}
	direct := map[[2]string][]string{}
	link := func(m map[[2]string][]string, tenant, a, b string) {
		if a != b && r.Find(tenant, b) != nil {
			m[[2]string{tenant, a}] = append(m[[2]string{tenant, a}], b)
			m[[2]string{tenant, b}] = append(m[[2]string{tenant, b}], a)
		}
	}
	for k := range relatives {
		in := r.Find(k[0], k[1])
		p := &in.Spec.Placement
		for _, name := range p.Together {
			link(direct, in.Metadata.Namespace, in.Metadata.Name, name)
		}
		for _, name := range p.Apart {
			link(out.Apart, in.Metadata.Namespace, in.Metadata.Name, name)
		}
	}
	for k, list := range out.Apart {
		slices.Sort(list)
		out.Apart[k] = slices.Compact(list)
	}
	for k := range direct {
		if out.Together[k] != nil {
			continue
		}
		group := []string{k[1]}
		for i := 0; i < len(group); i++ {
			for _, next := range direct[[2]string{k[0], group[i]}] {
				if !slices.Contains(group, next) {
					group = append(group, next)
				}
			}
		}
		slices.Sort(group)
		for _, name := range group {
			out.Together[[2]string{k[0], name}] = slices.DeleteFunc(slices.Clone(group), func(other string) bool { return other == name })
		}
	}
	return out
}

// ProvidersOf are the providers of an intent's contracts, in order: of those
// that are charged and whose provider is not lost, or of all that are held,
// draining ones included.
func ProvidersOf(r *draft.Draft, tenant, name string, held bool) []string {
	var out []string
	add := func(c *v1alpha1.Contract) {
		if o := r.OfferOf(c); !held && o != nil && o.State == model.Lost {
			return // no intent follows where nothing is served
		}
		if c.Status.Phase.Charged() || (held && c.Status.Phase.Held()) {
			out = append(out, c.Spec.Provider)
		}
	}
	list := r.W.Ledger.ByIntent(tenant, name)
	if j := r.JobOf(tenant, name); j != nil {
		for _, c := range j.Live {
			add(c)
		}
		list = j.All
		if !held {
			list = nil
		}
	}
	for _, c := range list {
		add(r.Latest(c))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
