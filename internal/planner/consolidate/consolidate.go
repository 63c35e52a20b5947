package consolidate

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// defaultThreshold is that of Fleet.consolidation, in millionths.
const defaultThreshold = 500_000

// Wanted reports whether the fleet wants better offers looked for.
func Wanted(fleet *v1alpha1.FleetSpec) bool {
	m := fleet.Consolidation.Mode
	return m == "propose" || m == "apply"
}

func newConsolidation(r *settle.Settler) *consolidation {
	out := &consolidation{Settler: r, hold: r.Hold(), threshold: defaultThreshold}
	if t := r.Fleet.Consolidation.Threshold; t != nil {
		out.threshold = t.Micro()
	}
	out.later = out.findLater()
	return out
}

// Run looks for better offers for what the jobs of a round have, and for moves that make room
// for those who wait: waiting are these, in the order of their turns. again serves them: what a
// move leaves is what one of them may wait for, and what is kept for it is not for the next
// move.
func Run(r *settle.Settler, waiting func() []*draft.Job, again func()) {
	newConsolidation(r).run(waiting, again)
}

// run proposes moves, and makes them where the fleet asks for it. Each move makes the
// pool cheaper and may thereby make another worth it, so it goes round until
// nothing changes: a plan that was applied leaves nothing to do.
func (r *consolidation) run(waiting func() []*draft.Job, again func()) {
	const passes = 8
	for range passes {
		moved := r.makeRoom(waiting())
		if moved {
			again()
			r.room = nil
		}
		r.costs = r.poolCosts()
		for _, j := range r.Jobs {
			r.Match.Trim()
			moved = r.consolidateJob(j) || moved
		}
		if !moved {
			return
		}
		if r.By(draft.RulesServedAfterMoves) {
			again()
			r.room = nil
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
	r.keepAway(j)
	if w, shares := place.Shares(&r.Placer, j); shares && place.OnNodes(&r.Placer, w) {
		return false // what a domain of nodes would save is not looked for
	} else if shares && (w.Required || place.Home(&r.Placer, j, w) != "") {
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
			p = v1alpha1.Proposal{Contract: c.Metadata.Name, Flavor: b.cand.Offer.Ref, Since: r.Now, Hourly: b.cand.Quote.Hourly.Decimal(), Saves: b.lower.Decimal()}
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

// moveTo makes a proposed move: the new contract next to the old one, which is
// then released.
func (r *consolidation) moveTo(j *draft.Job, c *v1alpha1.Contract, b *better, p v1alpha1.Proposal) bool {
	text := "saves " + b.lower.Text() + " " + r.Books.Currency + "/h, proposed since " + draft.Stamp(p.Since)
	to, alt := b.cand.Offer, b.alt
	return r.leavesRoom(func() bool {
		f := r.Exchange(j, place.Request{Only: to}, draft.Task{Kind: draft.TaskMove, Replica: c.Spec.Intent.Replica, Old: c}, alt, alt+1, lifecycle.CodeConsolidated, text)
		return f == nil
	}, c)
}
