package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// What others leave of their quotas a tenant may borrow (package account), last:
// every intent has its turn within its tenant's quota before any has one beyond
// it. When an intent within its own tenant's quota fits nowhere else, contracts of
// tenants above their quota that hold what they borrowed give way to it, of any
// priority, with their grace, the least disturbing first (displace.go). Nobody
// preempts or reclaims in order to borrow: that would go round in circles.

// reclaims reports whether a job's tenant may have had capacity borrowed from
// it.
func (r *round) reclaims(j *job) bool { return len(r.borrowed) > 0 && j.tenant.Lends() }

// askedBack reports whether somebody waits who would ask a size on an offer back
// at once if a job's tenant borrowed for it. What is free he would have taken
// himself; what is kept warm only becomes his to ask for by being lent.
func (r *round) askedBack(j *job, o *inventory.Offer, size quantity.Vector) bool {
	lent := j.tenant.Borrowed(sizeOn(o, size), nil)
	if len(lent) == 0 {
		return false
	}
	for _, k := range r.jobs {
		if len(k.tasks) == 0 || k.tenantName == j.tenantName || k.warm() || k.silent || k.finding() || !k.tenant.Owns(lent) {
			continue
		}
		for alt := range k.alternatives() {
			if c := r.shapeOf(k, alt).Of(o); c != nil && c.FailsMoney == "" && makesRoom(c, size) {
				return true
			}
		}
	}
	return false
}

// makesRoom reports whether a candidate would fit if so much were given back.
func makesRoom(c *match.Candidate, back quantity.Vector) bool {
	for i, n := range c.Offer.Free() {
		if n+back.At(i) < max(c.Size.At(i), 0) {
			return false
		}
	}
	return len(c.Size) <= len(c.Offer.Free()) || c.Size[len(c.Offer.Free()):].Within(nil)
}
