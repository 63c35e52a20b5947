package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// mostDivided is of how many units at most a replica is divided again in its batch.
const mostDivided = 64

// Division is how a batch may put a replica together from parts, by one of its intent's
// alternatives: from at most Most, of at least Least of its Of units.
type Division struct {
	Most      int32
	Least, Of int64
	placer    *Placer
	job       *draft.Job
	alt       int
}

// DivisionOf is that of a job by its alt-th alternative, nil where a batch leaves its parts
// as they are.
func DivisionOf(r *Placer, j *draft.Job, alt int) *Division {
	if !divided(r, j) {
		return nil
	}
	q := Request{}
	x := r.partitionOf(j, q, alt, draft.Task{})
	d := &Division{Most: j.In.Spec.Split.MaxParts, Least: x.least, Of: x.of, placer: r, job: j, alt: x.alt}
	if d.Of < 2*d.Least || d.Of > mostDivided {
		return nil
	}
	return d
}

// Request is that of one part.
func (d *Division) Request(number int32, units int64) Request {
	return d.placer.forPart(d.job, Request{}, portion{number, units, d.Of})
}

// Class is the request class of a part of so many units, up to date.
func (d *Division) Class(units int64) *match.Class {
	return d.placer.ClassFor(d.job, d.Request(0, units), d.alt)
}

// divided reports whether a batch may divide replicas of a job: where its parts are depends on
// nothing but room, price and what its tenant may take. A domain that is preferred because
// the intent says nothing of one does not keep its parts from where they cost less.
func divided(r *Placer, j *draft.Job) bool {
	in := &j.In.Spec
	if in.Split == nil || in.Split.MaxParts < 2 || in.VirtualNode.IsShared() || in.Budget != nil || r.Ruled(j) {
		return false
	}
	if _, shares := domain.Of(r.Fleet, j.In); !shares || !r.By(draft.RulesWithin) {
		return true
	}
	return j.Replicas() == 1 && in.Placement.Within == nil && r.Fleet.Defaults.Within == nil
}

// SeatPart is one part of a replica of a batch.
type SeatPart struct {
	At       *match.Candidate
	Contract *v1alpha1.Contract
	Units    int64
	// Line is the contract's in the plan.
	Line draft.ContractLine
}

// Placed reports whether a seat has a place, or parts.
func (s *Seat) Placed() bool { return s.At != nil || len(s.Parts) > 0 }

// Held are the contracts that a seat has now, Came those that it came with.
func (s *Seat) Held() (out []*v1alpha1.Contract) { return held(s.Contract, s.Parts) }

// Came is what Held was when the seat came to its batch.
func (s *Seat) Came() (out []*v1alpha1.Contract) { return held(s.First, s.FirstParts) }

func held(whole *v1alpha1.Contract, parts []SeatPart) (out []*v1alpha1.Contract) {
	if whole != nil {
		return []*v1alpha1.Contract{whole}
	}
	for i := range parts {
		out = append(out, parts[i].Contract)
	}
	return out
}

// sitInParts notes a replica that was placed in parts, for the repair of its batch.
func (x *attempt) sitInParts() {
	for i := range x.tasks {
		var parts []SeatPart
		for n, by := range x.taken {
			if by.part != nil && by.task == i {
				part := *by.part
				part.Line = x.lines[n]
				parts = append(parts, part)
			}
		}
		if len(parts) > 0 && DivisionOf(x.Placer, x.job, x.alt) != nil {
			x.sit(x.job, x.how, x.tasks[i], Seat{Alt: x.alt, Class: x.ClassFor(x.job, x.how, x.alt), Parts: parts})
		}
	}
}
