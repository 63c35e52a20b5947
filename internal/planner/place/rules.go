package place

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
)

// Rules are what a replica's place must respect apart from the offer itself: where
// the intent's other replicas are (placement.spread), and where other intents
// of its tenant do (placement.together, placement.apart). They change with
// every placement, so that classes, which many intents share, know nothing of
// them: they are asked with the limits, after capacity and money.
type Rules struct {
	Spread []spreadRule
	// seat are the domains by each of spread that the replica was given with all
	// others in view (seating.go), nil for any.
	seat []string
	// Together are the intents to be placed with, and their providers; by name.
	Together []neighbour
	// Apart names, for a provider, the intent that must not be met there.
	Apart map[string]string
	// within are the domains that replicas share.
	within []domain.Rule
	// only is the provider that a unit of intents is being tried on, "" for any.
	only string
}

// neighbour is another intent and the providers of its contracts.
type neighbour struct {
	Name      string
	Providers []string
}

// Breaks is the rule that an offer breaks, "" for none.
func (x *Rules) Breaks(o *inventory.Offer) string {
	if x == nil {
		return ""
	}
	if x.only != "" && o.Provider != x.only {
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
	for i := range x.within {
		if x.within[i].Breaks(o) {
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

// Detail explains with names and numbers which rule an offer breaks.
func (x *Rules) Detail(o *inventory.Offer, req string) string {
	if x == nil {
		return ""
	}
	switch req {
	case match.ReqTogether:
		for i := range x.Together {
			if n := &x.Together[i]; !slices.Contains(n.Providers, o.Provider) {
				return fmt.Sprintf("%s is on %s", n.Name, strings.Join(n.Providers, ", "))
			}
		}
		return "not all of those that belong together fit on " + o.Provider
	case match.ReqApart:
		return x.Apart[o.Provider] + " is on " + o.Provider
	case match.ReqWithin:
		for i := range x.within {
			if x.within[i].Breaks(o) {
				return x.within[i].Detail(o)
			}
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

// brokenText is how the first offer that only a rule keeps out breaks it; "" for
// what is no rule.
func (x *Rules) brokenText(s *match.Class, rejects func(*match.Candidate) string, req string) string {
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

// relations are the intents that must be together, over any number of steps,
// and apart, each from both sides: the one that comes second follows.
type relations struct{ Together, Apart map[[2]string][]string }

// BelongTogether reports whether a job's intent must be where another of its
// tenant is. It would not be served in that one's place.
func (r *Placer) BelongTogether(j *draft.Job, name string) bool {
	return slices.Contains(r.Relations().Together[draft.KeyOfJob(j)], name)
}

// Relations are the intents that are together or apart, by name.
func (r *Placer) Relations() *relations {
	if r.Related != nil {
		return r.Related
	}
	out := &relations{Together: map[[2]string][]string{}, Apart: map[[2]string][]string{}}
	r.Related = out
	direct := map[[2]string][]string{}
	link := func(m map[[2]string][]string, tenant, a, b string) {
		if a != b && r.Find(tenant, b) != nil {
			m[[2]string{tenant, a}] = append(m[[2]string{tenant, a}], b)
			m[[2]string{tenant, b}] = append(m[[2]string{tenant, b}], a)
		}
	}
	for k := range r.Relatives {
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
func (r *Placer) ProvidersOf(tenant, name string, held bool) []string {
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
