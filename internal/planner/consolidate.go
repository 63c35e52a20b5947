package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// Consolidation moves contracts that work to offers that have become better, if
// what it saves is worth the disruption:
//
//	saving ÷ cost of the pool
//	────────────────────────────────────────  ≥  threshold
//	disruption ÷ disruption of the pool
//
// the rule of Karpenter's "Balanced" consolidation (RFC in
// kubernetes-sigs/karpenter, designs/balanced-consolidation.md; its default k = 2 is our
// threshold of 0.5). The pool is the tenant's charged contracts: whoever is
// disturbed is who saves, and no team's contracts decide about another's. Cost
// and saving are averages over the coming week, price windows and transfer
// included; disruption is 1 and a hundredth of the priority, so 1 at the least.
// With equal contracts the rule reads: save at least half of what one costs.
//
// An offer is better when it is cheaper and the intent's own weights do not
// score it lower than where the contract is. It must be better, by however
// little, for the whole of `hold`; the threshold must be reached when that
// begins and when the move is made. The ledger remembers what is proposed since
// when (IntentStatus.Proposals), so that a restart changes nothing.
//
// It never flaps: prices as they are, each move lowers the week's cost of what
// it moves, so no place is left and come back to. Spot prices move by
// themselves; from spot to spot nothing is moved.

// Defaults of Fleet.consolidation.
const (
	defaultThreshold = 500_000 // millionths
	defaultHold      = 30 * time.Minute
)

const week = 7 * 24 * time.Hour

// consolidating reports whether the fleet wants better offers looked for.
func (r *round) consolidating() bool {
	m := r.Fleet.Consolidation.Mode
	return m == "propose" || m == "apply"
}

// better is an offer for a contract that would be cheaper.
type better struct {
	cand *match.Candidate
	alt  int
	// saves an hour.
	saves quantity.Micro
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
	*round
	// hold is how long an offer must be better, threshold what a move must save, in
	// millionths.
	hold      time.Duration
	threshold int64
	// later are the jobs that are not looked at in this round.
	later map[*draft.Job]bool
	// costs are what the pools cost as the pass began, by tenant.
	costs map[string]poolCost
}

func newConsolidation(r *round) *consolidation {
	out := &consolidation{round: r, hold: cmp.Or(r.Fleet.Consolidation.Hold.Duration, defaultHold), threshold: defaultThreshold}
	if t := r.Fleet.Consolidation.Threshold; t != nil {
		out.threshold = t.Micro()
	}
	out.later = out.findLater()
	return out
}

// run proposes moves, and makes them where the fleet asks for it. Each move makes the
// pool cheaper and may thereby make another worth it, so it goes round until
// nothing changes: a plan that was applied leaves nothing to do.
func (r *consolidation) run() {
	const passes = 8
	for range passes {
		moved := false
		r.costs = r.poolCosts()
		for _, j := range r.Jobs {
			r.Match.Trim()
			moved = r.consolidateJob(j) || moved
		}
		if !moved {
			return
		}
	}
}

// findLater finds the jobs for which better offers do not fit into the
// round: looking for them is charged like any other look at the market, after
// the decisions, in another order each minute. What is proposed for them stays.
func (r *consolidation) findLater() map[*draft.Job]bool {
	minute := r.Now.Truncate(settle.TurnsOf).Unix()
	var list []settle.Bidder
	for _, j := range r.Jobs {
		if !r.W.Deaf && r.consolidable(j) {
			list = append(list, settle.Bidder{Job: j, Lot: settle.Lot(minute, j.TenantName, j.Name)})
		}
	}
	slices.SortStableFunc(list, func(a, b settle.Bidder) int { return cmp.Compare(a.Lot, b.Lot) })
	late := map[*draft.Job]bool{}
	for _, x := range list {
		j := x.Job
		if code, _ := r.Bill.Over(j); code != "" {
			late[j] = true
			r.Due(v1alpha1.TimeOf(r.Now.Truncate(settle.TurnsOf).Add(settle.TurnsOf)))
			continue
		}
		for _, c := range j.Live {
			r.Bill.Charge(j, 1, c)
		}
	}
	return late
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

// poolCosts are what the contracts of each tenant cost now.
func (r *consolidation) poolCosts() map[string]poolCost {
	out := map[string]poolCost{}
	for _, j := range r.Jobs {
		p := out[j.TenantName]
		for _, c := range j.Live {
			p.hourly += r.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
			p.disruption += disruptionOf(c)
		}
		out[j.TenantName] = p
	}
	return out
}

// disruptionOf is what moving a contract disturbs, in thousandths: 1, and a
// hundredth of its priority.
func disruptionOf(c *v1alpha1.Contract) int64 { return 1000 + 10*int64(max(c.Spec.Priority, 0)) }

// consolidable reports whether an intent is served as it asks by contracts that
// all work, so that moving one is the only thing that happens to it.
func (r *consolidation) consolidable(j *draft.Job) bool {
	if j.In == nil || j.Silent || j.Warm() || j.Dec.Action != "" || j.Finding() || j.In.Spec.Stage == v1alpha1.StageReserve ||
		len(j.Tasks)+len(j.Open)+j.Releasing+j.Later > 0 || len(j.Live) == 0 || j.In.Spec.Split != nil || r.Ruled(j) {
		return false
	}
	return !slices.ContainsFunc(j.Live, func(c *v1alpha1.Contract) bool {
		return c.Status.Phase != v1alpha1.PhaseActive || c.Status.Displaced != nil || c.Spec.Intent.Part != 0
	})
}

// consolidateJob looks after one intent's contracts. It reports whether one was
// moved.
func (r *consolidation) consolidateJob(j *draft.Job) bool {
	switch {
	case r.W.Deaf || !r.consolidable(j):
		if j.State != nil && (r.W.Deaf || j.Silent) {
			r.EditJob(j)
			j.Proposals = j.State.Status.Proposals
		}
		return false
	case r.later[j]:
		r.EditJob(j)
		j.Proposals = standingProposals(j)
		return false
	}
	if w, shares := place.Shares(&r.Placer, j); shares && (w.Required || place.Home(&r.Placer, j, w) != "") {
		return (&together{r, j, w}).move()
	}
	return r.moveOne(j)
}

// moveOne proposes better offers for an intent's contracts, and moves one of them
// at most. It reports whether it did.
func (r *consolidation) moveOne(j *draft.Job) bool {
	was := map[string]v1alpha1.Proposal{}
	if j.State != nil {
		for _, p := range j.State.Status.Proposals {
			was[p.Contract] = p
		}
	}
	r.EditJob(j)
	j.Proposals = nil
	for _, c := range slices.Clone(j.Live) {
		p, known := was[c.Metadata.Name]
		b := r.betterFor(j, c, looked{only: p.Flavor})
		if b == nil && known {
			known = false
			b = r.betterFor(j, c, looked{})
		}
		if b == nil {
			continue
		}
		if !known {
			p = v1alpha1.Proposal{Contract: c.Metadata.Name, Flavor: b.cand.Offer.Ref, Since: r.Now, Hourly: b.cand.Quote.Hourly.Decimal(), Saves: b.saves.Decimal()}
		}
		ripe := v1alpha1.TimeOf(p.Since.Add(r.hold))
		if r.Fleet.Consolidation.Mode == "apply" && !ripe.After(r.Now.Time) && r.worth(j, c, b.saves) && r.moveTo(j, c, b, p) {
			return true
		}
		r.Due(ripe)
		j.Proposals = append(j.Proposals, p)
	}
	return false
}

// worth is the rule of the comment above, in whole numbers.
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
	o := r.OfferOf(c)
	if o == nil {
		return nil
	}
	alt := r.alternativeOf(j, c, o)
	if alt < 0 {
		return nil
	}
	q := r.For(j, place.Request{}, 1, c)
	m := r.Mark()
	defer r.Rollback(m)
	if among.how != nil {
		q = *among.how
	} else {
		r.OffAccount(c)
	}
	s := r.ClassFor(j, q, alt)
	l := r.LimitsFor(j, q, s, match.SpendLimits{}, 0)
	if among.how != nil {
		l.Rules = place.SharedRules(&r.Placer, j, q)
	}
	only, whole := among.only, among.how != nil
	here := s.Of(o)
	floor, costs := -1.0, r.weekly(c.Spec.Price)
	if here != nil {
		stays := *here
		stays.Resources = r.Resources(s.Request, o, here.Size, c)
		floor = s.Request.Weights.Score(&stays)
		costs += here.Quote.Transfer
	}
	var found *better
	for i := range s.Candidates {
		x := &s.Candidates[i]
		if x.Fails != "" || x.Scales || x.Unasked || x.Offer == o || (only != "" && x.Offer.Ref != only) || x.Quote.Hourly <= 0 || x.Score < floor || l.Rejects(x) != "" {
			continue
		}
		if x.Quote.Class == v1alpha1.Spot && c.Spec.Price.Class == v1alpha1.Spot {
			continue
		}
		if !whole && found != nil && x.Quote.Hourly >= found.cand.Quote.Peak {
			continue // it can be no cheaper at any hour
		}
		saves := costs - r.weekly(r.Match.ContractPrice(x.Offer, x.Quote, x.Size)) - x.Quote.Transfer
		if !whole && (saves <= 0 || only == "" && !r.worth(j, c, saves)) {
			continue
		}
		if found == nil || saves > found.saves || saves == found.saves && match.Before(x, found.cand, false) {
			found = &better{x, alt, saves}
		}
	}
	return found
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

// moveTo makes a proposed move: the new contract next to the old one, which is
// then released.
func (r *consolidation) moveTo(j *draft.Job, c *v1alpha1.Contract, b *better, p v1alpha1.Proposal) bool {
	text := "saves " + b.saves.Text() + " " + r.Books.Currency + "/h, proposed since " + draft.Stamp(p.Since)
	f := r.Exchange(j, place.Request{Only: b.cand.Offer}, draft.Task{Kind: draft.TaskMove, Replica: c.Spec.Intent.Replica, Old: c}, b.alt, b.alt+1, lifecycle.CodeConsolidated, text)
	return f == nil
}
