package consolidate

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// domainsLooked bounds in how many domains better offers are looked for, those with the
// cheapest first.
const domainsLooked = 8

// together is the consolidation of an intent whose replicas share a domain
// (placement.within): all move at once to offers of one domain, by what that saves in
// total against the disruption of all, or none does. Each replica's offer must score no
// lower than where it is.
type together struct {
	*consolidation
	job    *draft.Job
	within domain.Kind
}

// towards is where a contract of the job would go.
type towards struct {
	contract *v1alpha1.Contract
	offer    *inventory.Offer
	alt      int
	hourly   v1alpha1.Decimal
	// saves and lower are those of better.
	saves, lower quantity.Micro
}

// move proposes better offers for all contracts, and moves them where that is due. It
// reports whether it did.
func (x *together) move() bool {
	j := x.job
	was := map[string]v1alpha1.Proposal{}
	for _, p := range standingProposals(j) {
		was[p.Contract] = p
	}
	x.EditJob(j)
	j.Proposals = nil
	var plan []towards
	domain, known := "", len(was) == len(j.Live)
	if known {
		domain, plan = x.asProposed(was)
	}
	if plan == nil {
		known = false
		domain, plan = x.best()
	}
	if plan == nil {
		return false
	}
	since := x.Now
	for i := range plan {
		p, b := was[plan[i].contract.Metadata.Name], &plan[i]
		if !known {
			p = v1alpha1.Proposal{Contract: b.contract.Metadata.Name, Flavor: b.offer.Ref, Since: x.Now, Hourly: b.hourly, Saves: b.lower.Decimal()}
		}
		if i == 0 || p.Since.After(since.Time) {
			since = p.Since
		}
		j.Proposals = append(j.Proposals, p)
	}
	ripe := v1alpha1.TimeOf(since.Add(x.hold))
	if x.Fleet.Consolidation.Mode == "apply" && !ripe.After(x.Now.Time) && x.worthAll(plan) && x.moveAll(domain, plan, since) {
		return true
	}
	x.Due(ripe)
	return false
}

// asProposed is what was proposed, if that still saves anything.
func (x *together) asProposed(was map[string]v1alpha1.Proposal) (string, []towards) {
	for _, o := range x.Inventory.Offers() {
		if o.Ref != was[x.job.Live[0].Metadata.Name].Flavor {
			continue
		}
		domain := match.Domain(o, x.within.By, x.within.Label)
		plan := x.in(domain, func(c *v1alpha1.Contract) string { return was[c.Metadata.Name].Flavor })
		if plan != nil && saved(plan) > 0 {
			return domain, plan
		}
	}
	return "", nil
}

// best is the domain that saves the most in total and enough, nil for none.
func (x *together) best() (domain string, plan []towards) {
	s := x.ClassFor(x.job, x.request(), 0)
	var domains []string
	for _, i := range s.ByPrice() {
		d := match.Domain(s.Candidates[i].Offer, x.within.By, x.within.Label)
		if d != "" && !slices.Contains(domains, d) && len(domains) < domainsLooked {
			domains = append(domains, d)
		}
	}
	for _, d := range domains {
		next := x.in(d, func(*v1alpha1.Contract) string { return "" })
		if next != nil && x.worthAll(next) && (plan == nil || saved(next) > saved(plan)) {
			domain, plan = d, next
		}
	}
	return domain, plan
}

// request is for all of the job's replicas in place of what it has.
func (x *together) request() place.Request {
	return x.For(x.job, place.Request{}, len(x.job.Live), x.job.Live...)
}

// in is where all contracts would go in a domain, one after the other; nil where not all
// find a place.
func (x *together) in(domain string, only func(*v1alpha1.Contract) string) (out []towards) {
	j := x.job
	m := x.Mark()
	defer x.Rollback(m)
	for _, c := range j.Live {
		x.OffAccount(c)
	}
	q := x.request().Keeping(domain)
	for _, c := range j.Live {
		b := x.betterFor(j, c, looked{only: only(c), how: &q})
		if b == nil {
			return nil
		}
		out = append(out, towards{c, b.cand.Offer, b.alt, b.cand.Quote.Hourly.Decimal(), b.saves, b.lower})
		x.Put(nil, x.NewContract(j, q, x.ClassFor(j, q, b.alt), b.cand, nil, c.Spec.Intent.Replica))
	}
	return out
}

func saved(plan []towards) (sum quantity.Micro) {
	for i := range plan {
		sum += plan[i].saves
	}
	return sum
}

// worthAll is the rule of worth for all contracts at once.
func (x *together) worthAll(plan []towards) bool {
	pool, saves, disruption := x.costs[x.job.TenantName], saved(plan), int64(0)
	for i := range plan {
		disruption += disruptionOf(plan[i].contract)
	}
	have := quantity.Wide{}.AddProduct(int64(saves), pool.disruption, 1_000_000)
	need := quantity.Wide{}.AddProduct(int64(pool.hourly), disruption, x.threshold)
	return saves > 0 && have.Compare(need) >= 0
}

// moveAll makes the move, or nothing.
func (x *together) moveAll(domain string, plan []towards, since v1alpha1.Time) bool {
	lower := quantity.Micro(0)
	for i := range plan {
		lower += plan[i].lower
	}
	text := "all replicas move together, which saves " + lower.Text() + " " + x.Books.Currency + "/h, proposed since " + draft.Stamp(since)
	moved := x.leavesRoom(func() bool {
		for i := range plan {
			b := &plan[i]
			t := draft.Task{Kind: draft.TaskMove, Replica: b.contract.Spec.Intent.Replica, Old: b.contract}
			if f := x.Exchange(x.job, place.Request{Only: b.offer}.Keeping(domain), t, b.alt, b.alt+1, lifecycle.CodeConsolidated, text); f != nil {
				return false
			}
		}
		return true
	}, slices.Clone(x.job.Live)...)
	if moved {
		x.job.Proposals = nil
	}
	return moved
}
