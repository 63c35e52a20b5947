package formulate

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/batch"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// numbered is a kind of domain and the numbers of its values.
type numbered struct {
	domain.Kind
	numbers map[string]int32
}

// number is that of a domain.
func (n *numbered) number(domain string) int32 {
	at, known := n.numbers[domain]
	if !known {
		at = int32(len(n.numbers)) //nolint:gosec // their number
		n.numbers[domain] = at
	}
	return at
}

// domainsOf is the number of a kind of domain in the problem, which then says in which of
// them each row is.
func (b *Problem) domainsOf(w domain.Kind) int32 {
	w.Required = false
	for i := range b.domains {
		if b.domains[i].Kind == w {
			return int32(i) //nolint:gosec // their number
		}
	}
	n := numbered{w, map[string]int32{}}
	rows := make([]int32, len(b.offers))
	for r, o := range b.offers {
		rows[r] = batch.Nowhere
		if d := match.Domain(o, w.By, w.Label); d != "" {
			rows[r] = n.number(d)
		}
	}
	b.domains, b.Domains = append(b.domains, n), append(b.Domains, rows)
	return int32(len(b.domains) - 1) //nolint:gosec // their number
}

// share writes down which groups share a domain.
func (b *Problem) share() {
	for i, s := range b.Replicas {
		if w, ok := place.Shares(b.placer, s.Job); ok && b.Seats[i].Group >= 0 {
			b.Seats[i].Shares = b.domainsOf(w)
		}
	}
}

// inside is the kind of domain that a job's only replica must be in one of, whichever that
// is: it shares none, and is in no group (share). Nothing where it may be outside of all.
func inside(p *place.Placer, j *draft.Job) domain.Kind {
	w, ok := place.WithinOf(p, j.In)
	if _, shares := place.Shares(p, j); shares || !ok || !w.Required || !p.By(draft.RulesAloneInDomain) {
		return domain.Kind{}
	}
	return w
}

// outside reports whether an offer is in no domain of a kind.
func outside(w domain.Kind, o *inventory.Offer) bool {
	return w.By != "" && match.Domain(o, w.By, w.Label) == ""
}

// rule writes down the rules that jobs are under.
func (b *Problem) rule(bound *bindings) {
	numbers := map[*draft.Job]int32{}
	for i, s := range b.Replicas {
		j := s.Job
		number, known := numbers[j]
		if !known {
			number = batch.Nowhere
			if spread, money := len(j.In.Spec.Placement.Spread) > 0, budgeted(b.placer, j); spread || money || len(b.placer.Relations().Apart[draft.KeyOfJob(j)]) > 0 {
				number = int32(len(b.Rules)) //nolint:gosec // their number
				b.Rules = append(b.Rules, batch.Rule{Most: -1, By: batch.Nowhere, Spread: b.spread(s)})
				if money {
					b.Rules[number].Most = b.money(j, bound.members[j])
				}
			}
			numbers[j] = number
		}
		b.Seats[i].Rule = number
	}
	for _, s := range b.Replicas {
		if number := numbers[s.Job]; number >= 0 && b.Rules[number].By < 0 {
			b.keepApart(s.Job, numbers)
		}
	}
}

// budgeted reports whether a budget of its own limits what all replicas of a job cost.
func budgeted(p *place.Placer, j *draft.Job) bool {
	return j.Replicas() > 1 && place.MoneyWithout(p, j, nil).Hourly < quantity.Unlimited
}

// money is what a job may spend on all of its replicas.
func (b *Problem) money(j *draft.Job, seats []*place.Seat) quantity.Micro {
	var first []*v1alpha1.Contract
	for _, s := range seats {
		if s.First != nil {
			first = append(first, s.First)
		}
	}
	return place.MoneyWithout(b.placer, j, first).Hourly
}

// spread are the domains over which a replica's job is spread.
func (b *Problem) spread(s *place.Seat) (out []batch.Spread) {
	for i := range s.Job.In.Spec.Placement.Spread {
		sp := &s.Job.In.Spec.Placement.Spread[i]
		kind := b.domainsOf(domain.Kind{By: sp.By, Label: sp.Label})
		x := batch.Spread{Domains: kind, Skew: max(sp.MaxSkew, 1), Least: sp.MinDomains}
		for _, d := range place.DomainsOf(s.Class, sp.By, sp.Label) {
			x.Of = append(x.Of, b.domains[kind].number(d))
		}
		out = append(out, x)
	}
	return out
}

// keepApart writes down from whom a job is apart: those in the problem, and the providers
// of those that are not.
func (b *Problem) keepApart(j *draft.Job, numbers map[*draft.Job]int32) {
	rule := &b.Rules[numbers[j]]
	for _, name := range b.placer.Relations().Apart[draft.KeyOfJob(j)] {
		rule.By = b.domainsOf(domain.Kind{By: "provider"})
		if other := b.placer.JobOf(j.TenantName, name); other != nil {
			if n, here := numbers[other]; here && n >= 0 {
				rule.Apart = append(rule.Apart, n)
				continue
			}
		}
		for _, provider := range rules.ProvidersOf(&b.placer.Draft, j.TenantName, name, true) {
			if rule.Barred == nil {
				rule.Barred = map[int32]bool{}
			}
			rule.Barred[b.domains[rule.By].number(provider)] = true
		}
	}
}
