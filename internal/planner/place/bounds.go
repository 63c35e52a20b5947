package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// LimitsAhead are the limits of one more booking of a request's replicas, by those of its
// tenant, with the rules on where it may be beside what is placed; others follow and those
// before it spent so much.
func LimitsAhead(r *Placer, j *draft.Job, q Request, s *match.Class, spent match.SpendLimits, others int64, replica int32, placed []*v1alpha1.Contract, of account.Limits) *Limits {
	l := limitsFor(r, j, q, s, spent, others)
	l.Limits, l.booked = of, nil
	l.Rules = r.rulesFor(j, q, s, replica, placed)
	return l
}

// LimitsFor are the limits of one more of a request's replicas, of which others follow
// and those before it spent so much.
func (r *Placer) LimitsFor(j *draft.Job, q Request, s *match.Class, spent match.SpendLimits, others int64) *Limits {
	l := limitsFor(r, j, q, s, spent, others)
	draft.OnAxis(&r.Draft).Narrow(&l.Limits, r.Now, j.End)
	return l
}

// limitsFor is LimitsFor before what the tenant has booked.
func limitsFor(r *Placer, j *draft.Job, q Request, s *match.Class, spent match.SpendLimits, others int64) *Limits {
	l := r.LimitsOf(j.Tenant, q, j.Seconds)
	l.life = j.Seconds
	l.Only, l.avoid, l.bars, l.booked = q.Only, j.Avoid, rules.BarsOf(&r.Draft, j), untilBookedFor(r, j, q)
	reserve := quantity.Micro(0)
	if s.Cheapest < quantity.Unlimited {
		reserve = s.Cheapest * quantity.Micro(others)
	}
	take := func(limit, gone quantity.Micro) quantity.Micro {
		if limit >= quantity.Unlimited {
			return limit
		}
		return limit - gone
	}
	money := r.spending(j, q).Money
	l.own = match.SpendLimits{
		Hourly:     take(money.Hourly, spent.Hourly+reserve),
		HourlySpot: take(money.HourlySpot, spent.Hourly+reserve),
		Total:      take(money.Total, spent.Total+reserve.ForSeconds(j.Seconds)),
	}
	return l
}

// rulesFor are the rules of one more replica of an intent, nil when it has
// none. placed are contracts of the attempt under way; those in except are
// about to be replaced and do not count.
func (r *Placer) rulesFor(j *draft.Job, q Request, s *match.Class, replica int32, placed []*v1alpha1.Contract, except ...*v1alpha1.Contract) *Rules {
	p := &j.In.Spec.Placement
	related := r.Relations()
	k := draft.KeyOfJob(j)
	within := withinRules(r, j, q, s, placed, except)
	if len(p.Spread) == 0 && q.provider == "" && q.Nowhere == "" && len(within) == 0 && len(related.Together[k]) == 0 && len(related.Apart[k]) == 0 {
		return nil
	}
	x := &Rules{Only: q.provider, Nowhere: q.Nowhere, Within: within, Holds: holdsIn(r, s, within)}
	x.Spread = make([]rules.Spread, 0, len(p.Spread))
	for i := range p.Spread {
		sp := &p.Spread[i]
		x.Spread = append(x.Spread, rules.SpreadOf(&r.Draft, sp, j, DomainsOf(s, sp.By, sp.Label), replica, placed, except))
	}
	for _, name := range related.Together[k] {
		if at := neighbours(r, j, q, name); len(at) > 0 {
			x.Together = append(x.Together, rules.Neighbour{Name: name, Providers: at})
		}
	}
	for _, name := range related.Apart[k] {
		for _, provider := range rules.ProvidersOf(&r.Draft, j.TenantName, name, true) {
			if x.Apart == nil {
				x.Apart = map[string]string{}
			}
			if x.Apart[provider] == "" {
				x.Apart[provider] = name
			}
		}
	}
	return x
}
