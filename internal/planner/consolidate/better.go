package consolidate

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

const week = 7 * 24 * time.Hour

// better is an offer for a contract that would be cheaper.
type better struct {
	cand *match.Candidate
	alt  int
	// saves an hour, by which it is chosen: what the place is worth to others is taken off
	// (package scarcity). lower is the difference in price alone, which people are shown.
	saves, lower quantity.Micro
}

// poolCost is what the contracts of a pool cost an hour and how much disruption
// moving all of them would be, in thousandths.
type poolCost struct {
	hourly     quantity.Micro
	disruption int64
}

// consolidation is one run of the step: what the fleet asks for, and what it finds
// out on the way.
type consolidation struct {
	*settle.Settler
	// hold is how long an offer must be better, threshold what a move must save, in
	// millionths.
	hold      time.Duration
	threshold int64
	// later are the jobs that are not looked at in this round.
	later map[*draft.Job]bool
	// costs are what the pools cost as the pass began, by tenant.
	costs map[string]poolCost
	// kinds are those of requests that are asked for, nil until asked; room is in how many
	// offers there is room for each, nil when something moved; tight is the one for which a
	// move last left too little.
	kinds []asked
	room  []int
	tight int
	// looked are the looks for room for those that wait, of all tenants.
	looked int64
}

// standingProposals are those that the ledger remembers of what is still held.
func standingProposals(j *draft.Job) []v1alpha1.Proposal {
	if j.State == nil {
		return nil
	}
	var out []v1alpha1.Proposal
	for _, p := range j.State.Status.Proposals {
		if slices.ContainsFunc(j.Live, func(c *v1alpha1.Contract) bool { return c.Metadata.Name == p.Contract }) {
			out = append(out, p)
		}
	}
	return out
}

// disruptionOf is what moving a contract disturbs, in thousandths: 1, and a
// hundredth of its priority.
func disruptionOf(c *v1alpha1.Contract) int64 { return 1000 + 10*int64(max(c.Spec.Priority, 0)) }

// worth is the rule of the package comment, in whole numbers.
func (r *consolidation) worth(j *draft.Job, c *v1alpha1.Contract, saves quantity.Micro) bool {
	pool := r.costs[j.TenantName]
	have := quantity.Wide{}.AddProduct(int64(saves), pool.disruption, 1_000_000)
	need := quantity.Wide{}.AddProduct(int64(pool.hourly), disruptionOf(c), r.threshold)
	return saves > 0 && have.Compare(need) >= 0
}

// looked is among which offers a better one is looked for.
type looked struct {
	// only is the one, "" for any.
	only string
	// how is for a replica of a gang that moves as a whole to one domain, nil for a
	// contract that moves alone: what it saves is judged with the others then.
	how *place.Request
}

// betterFor is the cheapest better offer for a contract, or how much better the
// one named only is. Unless one is named the threshold must be reached.
func (r *consolidation) betterFor(j *draft.Job, c *v1alpha1.Contract, among looked) *better {
	m := r.Mark()
	defer r.Rollback(m)
	p := r.presentOf(j, c, among.how)
	if p == nil {
		return nil
	}
	s, only, whole := p.class, among.only, among.how != nil
	scarce, worth := r.Scarce.For(s.Request), quantity.Micro(0) // to others, where it is
	if p.here != nil {
		worth = scarce.Extra(p.here)
	}
	var found *better
	for i := range s.Candidates {
		x := &s.Candidates[i]
		if only != "" && x.Offer.Ref != only || x.Quote.Hourly <= 0 || x.Score < p.floor || !p.admits(x) {
			continue
		}
		if !whole && found != nil && x.Quote.Hourly >= found.cand.Quote.Peak {
			continue // it can be no cheaper at any hour
		}
		lower := p.costs - r.hourlyOf(x)
		saves := lower
		if saves > 0 {
			saves -= max(scarce.Extra(x)-worth, 0)
		}
		if !whole && (saves <= 0 || only == "" && !r.worth(j, c, saves)) {
			continue
		}
		if found == nil || saves > found.saves || saves == found.saves && match.Before(x, found.cand, false) {
			found = &better{x, p.alt, saves, lower}
		}
	}
	return found
}

// hourlyOf is what a place costs an hour, over a week, data that it moves included.
func (r *consolidation) hourlyOf(c *match.Candidate) quantity.Micro {
	return r.weekly(r.Match.ContractPrice(c.Offer, c.Quote, c.Size)) + c.Quote.Transfer
}

// present is where a contract is, and what another offer for it is compared with.
type present struct {
	contract *v1alpha1.Contract
	offer    *inventory.Offer
	alt      int
	class    *match.Class
	limits   *place.Limits
	// here is the offer as a candidate, nil where it is none any more; floor is its score
	// without the contract, costs an hour of it.
	here  *match.Candidate
	floor float64
	costs quantity.Micro
}

// presentOf is where a contract is, nil where its intent no longer asks for that. It takes a
// contract that moves alone off its tenant's account; how is for one that does not. Whoever
// calls it takes that back.
func (r *consolidation) presentOf(j *draft.Job, c *v1alpha1.Contract, how *place.Request) *present {
	o := r.OfferOf(c)
	if o == nil {
		return nil
	}
	p := &present{contract: c, offer: o, alt: r.alternativeOf(j, c, o), floor: -1, costs: r.weekly(c.Spec.Price)}
	if p.alt < 0 {
		return nil
	}
	q := r.For(j, place.Request{}, 1, c)
	if how != nil {
		q = *how
	} else {
		r.OffAccount(c)
	}
	p.class = r.ClassFor(j, q, p.alt)
	p.limits = r.LimitsFor(j, q, p.class, match.SpendLimits{}, 0)
	if how != nil {
		p.limits.Rules = place.SharedRules(&r.Placer, j, q, p.class)
	}
	if p.here = p.class.Of(o); p.here != nil {
		stays := *p.here
		stays.Resources = r.Resources(p.class.Request, o, p.here.Size, c)
		p.floor = p.class.Request.Weights.Score(&stays)
		p.costs += p.here.Quote.Transfer
	}
	return p
}

// admits reports whether the contract may be moved to an offer.
func (p *present) admits(x *match.Candidate) bool {
	return x.Fails == "" && !x.Scales && !x.Unasked && x.Offer != p.offer &&
		(x.Quote.Class != v1alpha1.Spot || p.contract.Spec.Price.Class != v1alpha1.Spot) && p.limits.Rejects(x) == ""
}

// alternativeOf is which of an intent's alternatives a contract serves, −1 for
// none.
func (r *consolidation) alternativeOf(j *draft.Job, c *v1alpha1.Contract, o *inventory.Offer) int {
	have := inventory.Sold(r.Names, c, o.Flavor)
	for i, alt := range j.Alternatives() {
		w := r.RequestOf(j, alt)
		if r.Match.FailsNature(w, o) == "" && w.Asked(o).Within(have) {
			return i
		}
	}
	return -1
}

// weekly is a price's average hour in the coming week, in the fleet's currency.
func (r *consolidation) weekly(p v1alpha1.ContractPrice) quantity.Micro {
	if len(p.Windows) == 0 {
		return r.InFleet(p.Hourly, p.Currency)
	}
	end := v1alpha1.TimeOf(r.Now.Add(week))
	return r.InFleet(r.Books.HoldUntil(p, r.Now, v1alpha1.Time{}, end), p.Currency) / quantity.Micro(week/time.Hour)
}
