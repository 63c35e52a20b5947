package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// AskOf is what a job asks for by one alternative of a request.
func (r *Placer) AskOf(j *draft.Job, q Request, alt int) *match.Ask {
	a := asksOf(j, q, &q.alternatives(j)[alt])
	a.Spending = r.spending(j, q)
	return a
}

// asksOf is what a job asks for by a request, whatever it costs.
func asksOf(j *draft.Job, q Request, request *v1alpha1.ResourceRequest) *match.Ask {
	a := &match.Ask{Intent: j.In, Consumer: j.Consumer, Request: request}
	if q.part != nil {
		a.Units, a.Of = q.part.units, q.part.of
	}
	if j.Tenant != nil {
		a.Tenant = j.Tenant.Spec
	}
	return a
}

// RequestOf makes a request of a job ready.
func (r *Placer) RequestOf(j *draft.Job, alt v1alpha1.ResourceRequest) *match.Request {
	return r.requestOf(j, Request{}, alt)
}

// requestOf is RequestOf for a part.
func (r *Placer) requestOf(j *draft.Job, q Request, alt v1alpha1.ResourceRequest) *match.Request {
	return r.Match.Request(asksOf(j, q, &alt))
}

// RequestBy makes ready what a job would ask for by another intent of its own, for one
// replica and with all of that intent's money.
func (r *Placer) RequestBy(j *draft.Job, in *model.Intent, seconds int64) *match.Request {
	a := &match.Ask{Intent: in, Consumer: j.Consumer, Request: &match.Alternatives(&in.Spec)[0]}
	if j.Tenant != nil {
		a.Tenant = j.Tenant.Spec
	}
	w := r.Match.Request(a)
	w.Spending = match.Spending{Replicas: 1, Money: r.moneyFor(j, in.Spec.Budget, nil, nil), Seconds: seconds}
	return w
}

// ClassOf is ClassFor for all of a job's tasks.
func (r *Placer) ClassOf(j *draft.Job, alt int) *match.Class { return r.ClassFor(j, Request{}, alt) }

// ClassFor is the request class of one alternative of a request, up to date.
func (r *Placer) ClassFor(j *draft.Job, q Request, alt int) *match.Class {
	s := KnownClass(r, j, q, alt)
	r.Match.Refresh(s)
	return s
}

// KnownClass is ClassFor as far as it is known: it is to be refreshed, or sketched.
func KnownClass(r *Placer, j *draft.Job, q Request, alt int) *match.Class {
	q.spending = r.spending(j, q)
	known := q.classes(j)
	if known.Of == nil || known.For != q.spending || known.Replayed != r.Replaying() {
		*known = draft.Classes{For: q.spending, Replayed: r.Replaying(), Of: make([]*match.Class, len(q.alternatives(j)))}
	}
	if known.Of[alt] == nil {
		known.Of[alt] = r.Match.Class(r.AskOf(j, q, alt))
	}
	return known.Of[alt]
}

// Best is the best candidate within limits, and the next three, until it is asked
// again.
func (l *Limits) Best(s *match.Class, thrifty bool) (best *match.Candidate, next []*match.Candidate) {
	if s.Fitting == 0 || l.below(&s.Least) {
		return nil, nil
	}
	return s.Best(l.admits, thrifty)
}

func (l *Limits) admits(c *match.Candidate) bool { return l.Rejects(c) == "" }

// Resources is the resources term of a size on an offer, as if a contract were not
// there.
func (r *Placer) Resources(w *match.Request, o *inventory.Offer, size quantity.Vector, without *v1alpha1.Contract) float64 {
	return r.Match.Resources(w, o, size, r.Footprint(o, without.Metadata.Name, without), inventory.CardsOf(without))
}
