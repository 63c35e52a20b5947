package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Conditions written in CEL (placement.where) are charged with their worst case,
// on every offer of the market, for each alternative; intents that ask for the
// same share one answer and pay once. What is asked beside the decision is
// charged too: near and try by what the decisions leave (near.go), better offers
// for what is held by the same units (consolidate.go). Explain asks the one
// intent that it is about, on each offer once more than the decision does. The
// fleet's own policies are not charged: they are reviewed with the fleet's file.

const postponedText = "the conditions (placement.where) of this round are used up (spec.limits.conditions of the fleet): it is looked at in one of the next rounds"

// workOf is the worst case of one evaluation of a condition; one that does not
// say counts as one unit.
func workOf(p model.Predicate) int64 {
	if p == nil {
		return 0
	}
	if c, says := p.(interface{ Cost() int64 }); says {
		return max(c.Cost(), 1)
	}
	return 1
}

// leaves reports whether something that a job holds has to go elsewhere.
func (j *job) leaves() bool {
	return slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind == failover || t.kind == leave || t.kind == move })
}

// postpone leaves an intent as it is in this round. What it holds stands on its
// terms. Only of an intent that was never seen and waits for its conditions it is
// written that it waits: what waits for work may be tens of thousands, and a
// commit of them all would delay the others as much as the work.
func (r *round) postpone(j *job, code, text string) {
	r.holdToTerms(j)
	j.tasks, j.news = nil, nil
	action := Queued
	for _, c := range j.live {
		j.dec.Contracts = append(j.dec.Contracts, r.line(c, Keep))
		action = Keep
	}
	j.silent = j.state != nil || action == Keep || j.finding() || code == CodeWork
	j.settle(action, v1alpha1.IntentQueued, code, "%s", text)
}
