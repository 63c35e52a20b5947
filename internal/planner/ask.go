package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// ask is what a job asks for by one of its alternatives, for as many replicas and as
// much money as its budget was made for.
func (j *job) ask(alt int) *match.Ask {
	a := j.asks(&j.alternatives()[alt])
	a.Replicas, a.Money, a.Seconds = int64(max(j.wanted, 1)), j.purse, j.seconds
	return a
}

// asks is what a job asks for by a request, whatever it costs.
func (j *job) asks(request *v1alpha1.ResourceRequest) *match.Ask {
	a := &match.Ask{Intent: j.in, Consumer: j.consumer, Request: request, Units: j.units, Of: j.of}
	if j.tenant != nil {
		a.Tenant = j.tenant.Spec
	}
	return a
}

// wishOf makes a request of a job ready.
func (r *round) wishOf(j *job, alt v1alpha1.ResourceRequest) *match.Request {
	return r.match.Request(j.asks(&alt))
}

// shapeOf is the shape of one alternative of a job, up to date.
func (r *round) shapeOf(j *job, alt int) *match.Class {
	s := j.shapes[alt]
	if s == nil {
		s = r.match.Class(j.ask(alt))
		j.shapes[alt] = s
	}
	r.match.Refresh(s)
	return s
}

// best is the best candidate within limits, and the next three, until it is asked
// again.
func (l *limits) best(s *match.Class, thrifty bool) (best *match.Candidate, next []*match.Candidate) {
	if s.Fitting == 0 || l.below(&s.Least) {
		return nil, nil
	}
	return s.Best(func(c *match.Candidate) bool { return l.breaks(c) == "" }, thrifty)
}

// resources is the resources term of a size on an offer, as if a contract were not
// there.
func (r *round) resources(w *match.Request, o *inventory.Offer, size quantity.Vector, without *v1alpha1.Contract) float64 {
	return r.match.Resources(w, o, size, r.footprint(o, without.Metadata.Name, without), inventory.CardsOf(without))
}

// transferOf is what a charged contract's data is estimated to cost an hour.
func (r *round) transferOf(c *v1alpha1.Contract) quantity.Micro {
	if c.Decision.Transfer == nil || !c.Status.Phase.Charged() {
		return 0
	}
	return r.inFleet(c.Decision.Transfer.Hourly, c.Decision.Transfer.Currency)
}

// shapeMemo is what a shape's users found out of it.
type shapeMemo struct {
	// failed remembers why nothing fitted.
	failed failedShape
	// spreads are the domains of the candidates, by key of placement.spread.
	spreads map[string][]string
}

func memoOf(s *match.Class) *shapeMemo {
	m, known := s.Memo.(*shapeMemo)
	if !known {
		m = &shapeMemo{}
		s.Memo = m
	}
	return m
}
