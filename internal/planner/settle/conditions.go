package settle

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Conditions written in CEL (placement.where) are charged with their worst case,
// on every offer of the market, for each alternative, and with what it takes to make
// what they are evaluated by, as if none were kept; intents that ask for the
// same share one answer and pay once. What is asked in addition to the decision is
// charged too: near and try by what the decisions leave (near.go), better offers
// for what is held by the same units (package consolidate). Explain asks the one
// intent that it is about, on each offer one time more than the decision does. The
// fleet's own policies are not charged: they are reviewed with the fleet's file.

const postponedText = "the conditions (placement.where) of this round are used up (spec.limits.conditions of the fleet): it is looked at in one of the next rounds"

// workOf is the worst case of one evaluation of a condition; one that does not
// say counts as one unit.
func workOf(p model.Predicate) int64 {
	if p == nil {
		return 0
	}
	if c, known := p.(interface{ Cost() int64 }); known {
		return max(c.Cost(), 1)
	}
	return 1
}

// madeOf is what it takes to make what a condition is evaluated by.
func madeOf(r *Settler, p model.Predicate) int64 {
	if c, known := p.(interface{ Made() int64 }); known && r.By(draft.RulesConditionsMade) {
		return c.Made()
	}
	return 0
}

// postpone leaves an intent as it is in this round. What it holds stays on its
// terms. Only of an intent that was never seen and waits for its conditions it is
// written that it waits: what waits for work may be tens of thousands, and a
// commit of them all would delay the others as much as the work.
func (r *Settler) postpone(j *draft.Job, code, text string) {
	r.HoldToTerms(j)
	j.Tasks, j.News = nil, nil
	action := draft.Queued
	for _, c := range j.Live {
		j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
		action = draft.Keep
	}
	j.Silent = j.State != nil || action == draft.Keep || j.Finding() || lifecycle.AwaitsTurn(code)
	j.Settle(action, v1alpha1.IntentQueued, code, "%s", text)
}
