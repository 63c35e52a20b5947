package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Request is how a job is to be served: what may be taken for it, and what its
// placement is for. It is handed down by value: who narrows it narrows a copy, and
// what a function does depends on the one that it is handed. What an intent keeps away
// from for what was denied it (Job.Avoid) follows from the ledger and is a fact of its
// job; the instant is the draft's (draft.Moment).
type Request struct {
	// MayBorrow: its tenant may go beyond its quota, by what others leave of theirs.
	MayBorrow bool
	// Only is the offer that alone is tried, provider the one on which all must be
	// placed that belongs together; nil and "" for any.
	Only     *inventory.Offer
	provider string
	// Nowhere is why those that belong together find no place as one, "" where one may be tried.
	Nowhere string
	// in is the domain of placement.within that is kept to.
	in domainChoice
	// shared is the domain that a unit of intents is being tried in, nil for any.
	shared *domain.Rule
	// part is the part of a replica that is placed, nil for a whole one. choice is what
	// would do in place of the alternatives that the intent states, nil for those.
	part   *portion
	choice *choice
	// spending is how many replicas are placed at once and what may be spent on them
	// (Placer.For). Without replicas it is that of all of the job's tasks, next to what
	// the job has.
	spending match.Spending
	// looks are what the turn may spend on parts of replicas, nil for no bound (allowance.go).
	looks *looks.Looks
	// Loose: as many replicas as fit, of a gang too.
	Loose bool
	// WithUnit: a copy of a job that is placed with those that belong to it, as the
	// job itself is.
	WithUnit bool
	// InBatch: what is placed may be moved within its batch (repair.go).
	InBatch bool
	// DryRun: it is taken back at once and takes nothing over from warm pools; Unasked: it
	// is not what Explain asks about.
	DryRun, Unasked bool
	// asked: nothing is placed next to accelerators that nobody asked for.
	asked bool
	// nextToOld: what is placed runs next to the contract that it is to replace.
	nextToOld bool
	// plain: what places are worth to others (package scarcity) does not count.
	plain bool
}

// choice are alternatives and the classes of them.
type choice struct {
	alternatives []v1alpha1.ResourceRequest
	classes      draft.Classes
}

// By is the request for some alternatives alone, in place of all that an intent states.
func (q Request) By(alternatives ...v1alpha1.ResourceRequest) Request {
	q.choice = &choice{alternatives: alternatives}
	return q
}

// alternatives are what would do, in order.
func (q *Request) alternatives(j *draft.Job) []v1alpha1.ResourceRequest {
	if q.choice != nil {
		return q.choice.alternatives
	}
	return j.Alternatives()
}

// classes are those of the alternatives.
func (q *Request) classes(j *draft.Job) *draft.Classes {
	if q.choice != nil {
		return &q.choice.classes
	}
	return &j.Classes
}

// Rehearsal is the request of a dry run.
var Rehearsal = Request{DryRun: true, Unasked: true}

// On is the request on one provider alone, for which what belongs together goes by price.
func (q Request) On(provider string) Request { q.provider = provider; return q.byPrice() }

// byPrice is the request by price alone.
func (q Request) byPrice() Request { q.plain = true; return q }

// yields reports whether an intent gives capacity back that others have booked.
func yields(j *draft.Job) bool { p := j.In.Spec.Preemption; return p != nil && p.Yields == "booked" }
