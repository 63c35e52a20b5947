package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// maxTimeToActive is within what time after its reservation a contract must be
// usable, 0 when its intent does not say.
func (r *round) maxTimeToActive(c *v1alpha1.Contract) v1alpha1.Duration {
	in := r.find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if in == nil || in.Spec.SLA == nil {
		return v1alpha1.Duration{}
	}
	return in.Spec.SLA.MaxTimeToActive
}

// late reports whether a contract that is delivered has not become usable in
// the time of sla.maxTimeToActive, and its consumer says so: one that does not
// answer proves nothing. It fails over then, and its intent keeps away from the
// flavor as after a denial.
func (r *round) late(c *v1alpha1.Contract) bool {
	switch c.Status.Phase {
	case v1alpha1.PhaseReserved, v1alpha1.PhasePeering:
	default:
		return false
	}
	limit := r.maxTimeToActive(c).Duration
	if limit <= 0 || c.Spec.Stage == v1alpha1.StageReserve || !r.w.Observed.Of(c.Metadata.Name).Consumer.Reachable {
		return false
	}
	until := v1alpha1.TimeOf(c.Spec.Term.Start.Add(limit))
	r.due(until)
	return !until.After(r.now.Time)
}

// availability reports whether an offer is as reliable as an intent's
// sla.availability (a percentage) demands; one that does not say is not.
func availability(sla *v1alpha1.SLA, o *inventory.Offer) bool {
	if sla == nil || sla.Availability == nil {
		return true
	}
	have := o.Flavor.Spec.Properties.Reliability
	return have != nil && have.MulInt(100).Cmp(*sla.Availability) >= 0
}

// sliced reports whether flavors of a type become ResourceSlices. Of the other
// types FLUIDOS defines what they offer, and not how it is delivered: such a
// contract reserves, and its provider does the rest.
func sliced(flavorType string) bool { return flavorType == "" || flavorType == "K8Slice" }

// undelivered is why a contract of a flavor's type stays Reserved, none when it
// does not.
func undelivered(flavorType string) ledger.Reason {
	if sliced(flavorType) {
		return ledger.Reason{}
	}
	return because("NotDelivered", "a "+flavorType+" does not become a slice; it is reserved, and its provider delivers it")
}
