package planner

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/consolidate"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Decide makes the plan of a world. It reads nothing else and changes nothing
// in it; equal worlds give equal plans.
func Decide(w draft.World) *draft.Plan {
	r := newRound(&w)
	r.decide()
	return agree(r, fromNothing).Plan
}

// decide makes the plan of a round that has read its world, in eight steps, each of
// which is timed by itself (Session.Step). Who reads the world has begun the first.
func (r *round) decide() {
	// 1. Observe: releases go on by what clusters report, and what flavors that
	// shrank no longer hold is marked.
	r.observeAll()

	// 2. Guard: budgets end what they no longer pay for, and where too much would
	// end at once nothing does.
	r.guard()

	// 3. Settle: intents that are served as they ask are kept; of the others all is
	// decided that needs no offer, and what does becomes tasks.
	r.settle()

	// 4. Serve: each waiting intent has its turn with the offers, and may make
	// others give way. 5. Batch: what came at once is solved as a whole. Then those
	// that book ahead have theirs. They take turns until nobody gives way, and nothing
	// more is booked.
	r.lineUp()
	takeAllTurns(r)
	r.lookOnly()

	// 6. Consolidate: better offers are proposed or moved to.
	r.consolidate()

	// 7. Conclude: decisions in words, estimates, states and what is written.
	r.conclude()

	// 8. Check: what breaks an invariant, asked by other means, is withdrawn.
	r.check()
}

// denialTries is how often a round is made again at most for what it found denied.
const denialTries = 3

// reading reads the world of a round that has decided by other marks.
type reading func(*round, map[string]draft.RefusalMark) *round

// agree makes a round that has decided again where what it leaves in the ledger puts other
// providers out of the market than it was decided by: a denial that was seen counts in
// the round that sees it, one that is over no more. Else the next round, in which nothing
// has changed, would decide otherwise (invariant 3). Only what clusters report changes a
// denial, and nothing that a round decides: what is written of one intent may be refused
// where the rest lands. The round that is left may be another, on the same errand; the one
// given is used up then. again reads the world a second time by other marks: what is made from
// nothing is made so again, because it is what a Session is compared with.
//
// Where denialTries do not agree either, the last one is taken: it is a plan as any other by
// the marks that it was decided by, and oversells nothing. The next round begins with those
// that it leaves, so that it may decide otherwise though nothing has changed. That is a
// fault of ours, of which the plan shows nothing, since a plan must not depend on who
// watches: errand.disputed is told the providers by which they differ.
func agree(r *round, again reading) *round {
	if !r.By(draft.RulesDenialsSeen) {
		return r
	}
	for try := 0; ; try++ {
		marks := marksLeft(r)
		if maps.Equal(marks, r.Marks) {
			return r
		}
		if try == denialTries {
			if r.disputed != nil {
				r.disputed(slices.Sorted(slices.Values(differing(marks, r.Marks))))
			}
			return r
		}
		if marks == nil {
			marks = map[string]draft.RefusalMark{} // nobody is out of the market, whatever the ledger still says
		}
		e := r.errand.again()
		StepObserve.begin(e.step)
		next := again(r, marks)
		next.on(e)
		next.decide()
		for i := range next.Plan.Contracts { // the next round must know it
			if c := &next.Plan.Contracts[i]; denialChanged(next, c.Before, c.After) {
				c.StatusOnly = false
			}
		}
		r = next
	}
}

// takeAllTurns is takeTurns by what places are worth to others: again while somebody was placed,
// so that what is kept for those that wait is chosen by who holds something in the end, as it
// is in the next plan. What has its place then is not moved within its batch.
func takeAllTurns(r *round) {
	for n := range displacements {
		before, was := r.Advances, r.Scarce
		if weighScarcity(r, r.Waiting); n > 0 && was == nil && r.Scarce == nil {
			break
		}
		takeTurns(r)
		if r.Advances == before || !r.By(draft.RulesAgainAll) || !byCost(r, slices.Collect(maps.Keys(r.Claims))) {
			break
		}
		r.Seats = nil
	}
}

// takeTurns serves those that wait, solves their batch and books ahead until nobody gives
// way, and nothing more is booked.
func takeTurns(r *round) {
	for range displacements {
		r.serve()
		r.serveAgain(r.batch())
		if booked := bookAhead(r); !r.displace() && !booked && !(len(r.Waiting) > 0 && draft.CountReplaced(&r.Draft)) {
			break
		}
	}
}

// bookAhead decides bookings, by what is there without what is kept for those that wait;
// what others give way for is not for new ones. It reports whether that changed anything.
func bookAhead(r *round) (changed bool) {
	if len(r.Bookers) > 0 {
		r.WithoutReserved(func() { changed = r.Ahead(r.WithoutClaimed) })
	}
	return changed
}

// guard finds what ends by money, and what must not end.
func (r *round) guard() {
	StepGuard.begin(r.step)
	r.cutBudgets()
	newEndGuard(r).holdBack()
}

// settle settles everything that needs no offer.
func (r *round) settle() {
	StepSettle.begin(r.step)
	for _, names := range [...]map[string]bool{r.Excess, r.Cut} {
		for name := range names {
			r.forgetContract(name)
		}
	}
	r.sift()
	draft.OnAxis(&r.Draft).LookAhead()
	r.addVanished()
	for _, j := range r.Jobs {
		r.Match.Trim()
		r.SettleJob(j)
	}
	r.Ration()
}

// consolidate looks for better offers where the fleet wants them.
func (r *round) consolidate() {
	StepConsolidate.begin(r.step)
	if consolidate.Wanted(r.Fleet) {
		if r.By(draft.RulesAgainAll) {
			r.WithoutBooked(r.Jobs, r.settleExcess)
		}
		weighScarcity(r, r.Jobs)
		consolidate.Run(&r.Settler, func() []*draft.Job { return r.Waiting }, func() {
			StepServe.begin(r.step)
			takeAllTurns(r)
			r.lookOnly()
			weighScarcity(r, r.Jobs)
			StepConsolidate.begin(r.step)
		})
	}
}

// conclude makes the plan of what came of the jobs.
func (r *round) conclude() {
	StepConclude.begin(r.step)
	r.WithoutBooked(r.Jobs, r.settleExcess)
	for _, j := range r.Jobs {
		r.finish(j)
	}
	if !r.W.Brief {
		r.LookNear()
	}
	r.CaptureKept()
	if !r.W.Brief {
		r.TellKept() // the estimate makes other reservations
		r.Estimate()
	}
	r.queuePositions()
	r.TellShares()
	states := r.states()
	learn(r, states)
	r.addDecisions()
	r.write(states)
}

// check withdraws what breaks an invariant, and sums up what is left.
func (r *round) check() {
	StepCheck.begin(r.step)
	r.checkInvariants()
	draft.OnAxis(&r.Draft).AddCalendar()
	r.totals()
}
