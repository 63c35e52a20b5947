package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// MaxTimeToActive is within what time after its reservation a contract must be
// usable, 0 when its intent does not state it.
func (b *Base) MaxTimeToActive(c *v1alpha1.Contract) v1alpha1.Duration {
	in := b.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if in == nil || in.Spec.SLA == nil {
		return v1alpha1.Duration{}
	}
	return in.Spec.SLA.MaxTimeToActive
}

// Late reports whether a contract that is delivered has not become usable in
// the time of sla.maxTimeToActive, and its consumer reports so: one that does not
// answer proves nothing. It fails over then, and its intent keeps away from the
// flavor as after a denial.
func (r *Draft) Late(c *v1alpha1.Contract) bool {
	late, due := r.LateBy(c)
	r.Due(due)
	return late
}

// LateBy is Late, and when that may change.
func (r *Draft) LateBy(c *v1alpha1.Contract) (late bool, due v1alpha1.Time) {
	switch c.Status.Phase {
	case v1alpha1.PhaseReserved, v1alpha1.PhasePeering:
		v := r.viewOf(c)
		return lifecycle.Late(c, r.MaxTimeToActive(c).Duration, &v)
	}
	return false, due // nearly always
}

// Trouble is why a contract fails over, as a code and in words.
func Trouble(r *Draft, c *v1alpha1.Contract) (code, text string) {
	if o := r.OfferOf(c); o != nil && o.State == model.Lost {
		return lifecycle.CodeProviderLost, c.Spec.Provider + " is not heard since " + Stamp(o.Since)
	}
	if r.Late(c) {
		return lifecycle.CodeSLA, "it was not usable within the " + r.MaxTimeToActive(c).String() + " of sla.maxTimeToActive"
	}
	said := ""
	if c.Status.Message != "" {
		said = ": " + c.Status.Message
	}
	switch c.Status.Reason {
	case ledger.DegradedRefused:
		return lifecycle.CodeRefused, c.Spec.Provider + "/" + c.Spec.Flavor + " refuses it" + said
	case ledger.DegradedSliceDenied:
		return lifecycle.CodeSliceDenied, c.Spec.Provider + "/" + c.Spec.Flavor + " denies the slice" + said
	}
	if c.Status.Reason == ledger.DegradedNode {
		return lifecycle.CodeNode, c.Spec.Provider + "/" + c.Spec.Flavor + ": " + c.Status.Message
	}
	return lifecycle.CodeShrunk, c.Spec.Provider + "/" + c.Spec.Flavor + " has less than it sold"
}
