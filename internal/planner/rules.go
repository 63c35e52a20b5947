package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// rules are what a replica's place must respect beside the offer itself: where
// the intent's other replicas stand (placement.spread), and where other intents
// of its tenant do (placement.together, placement.apart). They change with
// every placement, so that shapes, which many intents share, know nothing of
// them: they are asked with the limits, after capacity and money.
type rules struct {
	spread []spreadRule
	// seat are the domains by each of spread that the replica was given with all
	// others in view (seating.go), nil for any.
	seat []string
	// beside are the intents to be together with, and their providers; by name.
	beside []neighbour
	// apart names, for a provider, the intent that must not be met there.
	apart map[string]string
	// only is the provider that a unit of intents is being tried on, "" for any.
	only string
}

// neighbour is another intent and the providers of its contracts.
type neighbour struct {
	name      string
	providers []string
}

// rulesFor are the rules of one more replica of an intent, nil when it has
// none. placed are contracts of the attempt under way; those in except are
// about to be replaced and do not count.
func (r *round) rulesFor(j *job, q request, s *match.Class, replica int32, placed []*v1alpha1.Contract, except ...*v1alpha1.Contract) *rules {
	p := &j.in.Spec.Placement
	related := r.relations()
	k := keyOfJob(j)
	if len(p.Spread) == 0 && q.provider == "" && len(related.together[k]) == 0 && len(related.apart[k]) == 0 {
		return nil
	}
	x := &rules{only: q.provider}
	x.spread = make([]spreadRule, 0, len(p.Spread))
	for i := range p.Spread {
		x.spread = append(x.spread, r.spreadRule(&p.Spread[i], j, s, replica, placed, except))
	}
	for _, name := range related.together[k] {
		if at := r.providersOf(j.tenantName, name, false); len(at) > 0 {
			x.beside = append(x.beside, neighbour{name, at})
		}
	}
	for _, name := range related.apart[k] {
		for _, provider := range r.providersOf(j.tenantName, name, true) {
			if x.apart == nil {
				x.apart = map[string]string{}
			}
			if x.apart[provider] == "" {
				x.apart[provider] = name
			}
		}
	}
	return x
}

// breaks is the rule that an offer breaks, "" for none.
func (x *rules) breaks(o *inventory.Offer) string {
	if x == nil {
		return ""
	}
	if x.only != "" && o.Provider != x.only {
		return match.ReqTogether
	}
	for i := range x.beside {
		if !slices.Contains(x.beside[i].providers, o.Provider) {
			return match.ReqTogether
		}
	}
	if x.apart[o.Provider] != "" {
		return match.ReqApart
	}
	for i := range x.spread {
		if x.spread[i].breaks(o) || x.seat != nil && x.seat[i] != match.Domain(o, x.spread[i].by) {
			return match.ReqSpread
		}
	}
	return ""
}

// detail says with names and numbers which rule an offer breaks.
func (x *rules) detail(o *inventory.Offer, req string) string {
	if x == nil {
		return ""
	}
	switch req {
	case match.ReqTogether:
		for i := range x.beside {
			if n := &x.beside[i]; !slices.Contains(n.providers, o.Provider) {
				return fmt.Sprintf("%s is on %s", n.name, strings.Join(n.providers, ", "))
			}
		}
		return "not all of those that belong together fit on " + o.Provider
	case match.ReqApart:
		return x.apart[o.Provider] + " is on " + o.Provider
	case match.ReqSpread:
		for i := range x.spread {
			if x.spread[i].breaks(o) {
				return x.spread[i].detail(o)
			}
		}
	}
	return ""
}

// brokenText says of the first offer that only a rule keeps out how it breaks
// it; "" for what is no rule.
func (x *rules) brokenText(s *match.Class, l *limits, req string) string {
	if x == nil {
		return ""
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Fails == "" && l.breaks(c) == req {
			if text := x.detail(c.Offer, req); text != "" {
				return req + ": " + text
			}
			return ""
		}
	}
	return ""
}

// obeys reports whether a contract may stay where it is under what its intent
// now says.
func (r *round) obeys(j *job, c *v1alpha1.Contract, o *inventory.Offer) bool {
	p := &j.in.Spec.Placement
	if len(p.Spread) == 0 && len(p.Together) == 0 && len(p.Apart) == 0 {
		return true
	}
	j.budget(r, 1, c)
	x := r.rulesFor(j, request{}, r.shapeOf(j, 0), c.Spec.Intent.Replica, nil, c)
	return x.breaks(o) == ""
}

// relations are the intents that must be together, over any number of steps,
// and apart, each from both sides: whoever comes second follows.
type relations struct{ together, apart map[[2]string][]string }

// belongTogether reports whether a job's intent must be where another of its
// tenant is. It would not be served in that one's place.
func (r *round) belongTogether(j *job, name string) bool {
	return slices.Contains(r.relations().together[keyOfJob(j)], name)
}

func keyOfJob(j *job) [2]string { return [2]string{j.tenantName, j.name} }

func (r *round) relations() *relations {
	if r.related != nil {
		return r.related
	}
	out := &relations{together: map[[2]string][]string{}, apart: map[[2]string][]string{}}
	r.related = out
	direct := map[[2]string][]string{}
	link := func(m map[[2]string][]string, tenant, a, b string) {
		if a != b && r.find(tenant, b) != nil {
			m[[2]string{tenant, a}] = append(m[[2]string{tenant, a}], b)
			m[[2]string{tenant, b}] = append(m[[2]string{tenant, b}], a)
		}
	}
	for k := range r.relatives {
		in := r.find(k[0], k[1])
		p := &in.Spec.Placement
		for _, name := range p.Together {
			link(direct, in.Metadata.Namespace, in.Metadata.Name, name)
		}
		for _, name := range p.Apart {
			link(out.apart, in.Metadata.Namespace, in.Metadata.Name, name)
		}
	}
	for k, list := range out.apart {
		slices.Sort(list)
		out.apart[k] = slices.Compact(list)
	}
	for k := range direct {
		if out.together[k] != nil {
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
			out.together[[2]string{k[0], name}] = slices.DeleteFunc(slices.Clone(group), func(other string) bool { return other == name })
		}
	}
	return out
}

// providersOf are the providers of an intent's contracts, in order: of those
// that are charged and whose provider is not lost, or of all that are held,
// draining ones included.
func (r *round) providersOf(tenant, name string, held bool) []string {
	var out []string
	add := func(c *v1alpha1.Contract) {
		if o := r.offerOf(c); !held && o != nil && o.State == model.Lost {
			return // nobody follows where nothing is served
		}
		if c.Status.Phase.Charged() || (held && c.Status.Phase.Held()) {
			out = append(out, c.Spec.Provider)
		}
	}
	list := r.w.Ledger.ByIntent(tenant, name)
	if j := r.jobOf(tenant, name); j != nil {
		for _, c := range j.live {
			add(c)
		}
		list = j.all
		if !held {
			list = nil
		}
	}
	for _, c := range list {
		add(r.latest(c))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// jobOf is the job of an intent in this round, nil when it needs none.
func (r *round) jobOf(tenant, name string) *job {
	if len(r.jobsByName) != len(r.jobs) {
		r.jobsByName = make(map[[2]string]*job, len(r.jobs))
		for _, j := range r.jobs {
			r.jobsByName[[2]string{j.tenantName, j.name}] = j
		}
	}
	return r.jobsByName[[2]string{tenant, name}]
}
