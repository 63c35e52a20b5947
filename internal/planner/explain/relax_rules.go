package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// skewsTried bounds how many values of maxSkew are tried, the smallest first.
const skewsTried = 4

// isRule reports whether a requirement is one of the rules.
func isRule(x *place.Rules, req string) bool {
	return x != nil && (req == match.ReqSpread || req == match.ReqWithin || req == match.ReqTogether || req == match.ReqApart)
}

// relaxRule are the changes of an intent after which an offer would break no rule,
// the smallest first.
func relaxRule(x *place.Rules, spec *v1alpha1.IntentSpec, o *inventory.Offer, req string, replicas int) []relaxation {
	one := func(said, text string, change func(*v1alpha1.Placement)) relaxation {
		out := relaxation{offer: o, req: req, spec: *spec, said: said, text: text, cost: 5}
		change(&out.spec.Placement)
		return out
	}
	without := func(list []string, names ...string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(names, s) })
	}
	switch req {
	case match.ReqApart:
		name := x.Apart[o.Provider]
		rest, text := without(spec.Placement.Apart, name), ""
		if len(rest) < len(spec.Placement.Apart) {
			text = "placement.apart: [" + strings.Join(rest, ", ") + "]"
		}
		return []relaxation{one("is where "+name+" is", text, func(p *v1alpha1.Placement) { p.Apart = rest })}
	case match.ReqTogether:
		var names []string
		for i := range x.Together {
			if n := &x.Together[i]; !slices.Contains(n.Providers, o.Provider) {
				names = append(names, n.Name)
			}
		}
		if len(names) == 0 {
			return nil
		}
		rest, text := without(spec.Placement.Together, names...), ""
		if len(rest) == len(spec.Placement.Together)-len(names) {
			text = "placement.together: [" + strings.Join(rest, ", ") + "]"
		}
		return []relaxation{one("is not where "+strings.Join(names, " and ")+" is", text, func(p *v1alpha1.Placement) { p.Together = rest })}
	}
	if req == match.ReqWithin {
		return nil // by domain and not by offer (relaxWithin)
	}
	for i := range x.Spread {
		s := &x.Spread[i]
		if !s.Breaks(o) || i >= len(spec.Placement.Spread) {
			continue
		}
		d := s.DomainOf(o)
		said := fmt.Sprintf("would be replica %d in %s %s, where others have %d", s.In(d)+1, s.By, d, s.Least)
		list := slices.Clone(spec.Placement.Spread)
		if s.InUse < s.MinDomains && s.In(d) > 0 {
			list[i].MinDomains = int32(s.InUse)
			return []relaxation{one(said, spreadText(list), func(p *v1alpha1.Placement) { p.Spread = list })}
		}
		var out []relaxation
		for skew := s.In(d) + 1 - s.Least; skew <= replicas && len(out) < skewsTried; skew++ {
			list = slices.Clone(list)
			list[i].MaxSkew = int32(skew)
			wider := list
			out = append(out, one(said, spreadText(wider), func(p *v1alpha1.Placement) { p.Spread = wider }))
		}
		return out
	}
	return nil
}

// relaxWithin are the changes after which replicas that share a domain may be placed:
// fewer of them, a wider domain, one that is only preferred.
func (r *Explainer) relaxWithin(j *draft.Job, f *draft.Failure) (out []relaxation) {
	w, ok := place.Shares(&r.Placer, j)
	if !ok {
		return nil
	}
	with := func(text string, change func(*v1alpha1.IntentSpec)) {
		x := relaxation{req: match.ReqWithin, spec: j.In.Spec, text: text, cost: 5, price: quantity.Unlimited}
		change(&x.spec)
		out = append(out, x)
	}
	within := func(next v1alpha1.Within, text string) {
		with("placement.within: {"+text+"}", func(s *v1alpha1.IntentSpec) { s.Placement.Within = &next })
	}
	if w.By == "provider" {
		within(v1alpha1.Within{By: "region"}, "by: region")
	}
	named := "by: " + w.By
	if w.Label != "" {
		named += ", label: " + w.Label
	}
	within(v1alpha1.Within{By: w.By, Label: w.Label, Policy: v1alpha1.WithinPreferred}, named+", policy: Preferred")
	if n := f.Fit; n > 0 && !j.Follows() && len(j.Live) == 0 {
		with(fmt.Sprintf("replicas: %d", n), func(s *v1alpha1.IntentSpec) { s.Replicas = v1alpha1.Replicas{Min: int32(n), Max: int32(n)} })
	}
	return out
}

// spreadText is placement.spread as one writes it.
func spreadText(list v1alpha1.SpreadList) string {
	var parts []string
	for _, s := range list {
		text := "{by: " + s.By
		if s.Label != "" {
			text += ", label: " + s.Label
		}
		if s.MaxSkew > 0 {
			text += fmt.Sprintf(", maxSkew: %d", s.MaxSkew)
		}
		if s.MinDomains > 0 {
			text += fmt.Sprintf(", minDomains: %d", s.MinDomains)
		}
		parts = append(parts, text+"}")
	}
	return "placement.spread: [" + strings.Join(parts, ", ") + "]"
}
