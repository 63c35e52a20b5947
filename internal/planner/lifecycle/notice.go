package lifecycle

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Interrupt is a spot contract with notice that its provider takes it back (is), or let
// off again, nil where nothing changes. It has to leave after grace. Who has to give
// way for another cause gets no further notice.
func Interrupt(c *v1alpha1.Contract, is bool, now v1alpha1.Time, grace time.Duration) *v1alpha1.Contract {
	d := c.Status.Displaced
	if is == (d != nil && d.Cause == v1alpha1.Interrupted) || is && d != nil {
		return nil
	}
	next := *c
	next.Status.Displaced = nil
	if is {
		next.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Interrupted, Noticed: now, Leaves: v1alpha1.TimeOf(now.Add(grace))}
	}
	return &next
}

// Late reports whether a contract that is delivered has not become usable within limit
// of its reservation (0: there is no limit), and its consumer reports so: one that does
// not answer proves nothing. due is when it is late, zero where it cannot be.
func Late(c *v1alpha1.Contract, limit time.Duration, v *View) (late bool, due v1alpha1.Time) {
	switch c.Status.Phase {
	case v1alpha1.PhaseReserved, v1alpha1.PhasePeering:
	default:
		return false, due
	}
	if limit <= 0 || c.Spec.Stage == v1alpha1.StageReserve || !v.Observed.Consumer.Reachable {
		return false, due
	}
	from := c.Spec.Term.Start
	for i, h := range c.Status.History { // what was booked may begin after its start, as what was there before it goes
		if i > 0 && c.Status.History[i-1].Phase == v1alpha1.PhaseBooked && h.At.After(from.Time) {
			from = h.At
		}
	}
	due = v1alpha1.TimeOf(from.Add(limit))
	return !due.After(v.Now.Time), due
}

// sliced reports whether flavors of a type become ResourceSlices. Of the other types
// FLUIDOS defines what they offer, and not how it is delivered: such a contract
// reserves, and its provider does the rest.
func sliced(flavorType string) bool { return flavorType == "" || flavorType == "K8Slice" }

// Reserves reports whether nothing is ever delivered of an intent's contracts.
func Reserves(in *v1alpha1.IntentSpec) bool {
	return in.Stage == v1alpha1.StageReserve || !sliced(in.FlavorType)
}

// Undelivered is why a contract of a flavor's type stays Reserved, none when it does
// not.
func Undelivered(flavorType string) ledger.Reason {
	if sliced(flavorType) {
		return ledger.Reason{}
	}
	return because("NotDelivered", "a "+flavorType+" does not become a slice; it is reserved, and its provider delivers it")
}
