package ledger

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxHistory is how many phase changes a contract's file keeps.
const maxHistory = 10

// steps is the phase table of the package comment. Leaving Releasing is
// further bound by the contract's target.
var steps = map[v1alpha1.Phase][]v1alpha1.Phase{
	"":                      {v1alpha1.PhaseReserved, v1alpha1.PhaseBooked},
	v1alpha1.PhaseBooked:    {v1alpha1.PhaseReserved, v1alpha1.PhaseReleased, v1alpha1.PhaseExpired, v1alpha1.PhaseFailed},
	v1alpha1.PhaseReserved:  {v1alpha1.PhasePeering, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing},
	v1alpha1.PhasePeering:   {v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing},
	v1alpha1.PhaseActive:    {v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing},
	v1alpha1.PhaseDegraded:  {v1alpha1.PhaseReserved, v1alpha1.PhasePeering, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing},
	v1alpha1.PhaseReleasing: {v1alpha1.PhaseReleased, v1alpha1.PhaseExpired, v1alpha1.PhasePreempted, v1alpha1.PhaseFailed},
}

// Ended reports whether a phase is an end: the contract keeps no capacity and
// changes no more.
func Ended(p v1alpha1.Phase) bool {
	return slices.Contains(steps[v1alpha1.PhaseReleasing], p)
}

func knownPhase(p v1alpha1.Phase) bool {
	return p.Held() || p == v1alpha1.PhaseBooked || Ended(p)
}

// Reason is why a contract is in its phase.
type Reason struct {
	// Code for programs, such as GrantedLess; "" for none.
	Code string
	// Message for people, "" where the code says it all.
	Message string
}

// ReasonOf is why a contract is in its phase.
func ReasonOf(c *v1alpha1.Contract) Reason { return Reason{c.Status.Reason, c.Status.Message} }

// Why a contract is Degraded: the codes of its reason. While it is degraded for a
// reason on the provider's side it accrues no cost.
const (
	DegradedProviderSilent = "ProviderSilent" // the provider's agent is not heard
	DegradedProviderLost   = "ProviderLost"   // … past its grace
	DegradedShrunk         = "FlavorShrunk"   // the flavor has less than it sold, and this contract is excess
	DegradedNode           = "NodeShrunk"     // one of the contract's nodes is gone or has less than was sold of it, while the flavor has enough
	DegradedWithdrawn      = "FlavorWithdrawn"
	DegradedSliceDenied    = "SliceDenied"          // the provider denied the slice
	DegradedRefused        = "ProviderRefused"      // the provider's agent says that it does not honour the contract
	DegradedNotHeld        = v1alpha1.ReasonNotHeld // the provider honours it again and has nothing of it yet: Liqo tells it only when the slice is touched
	DegradedEnforcement    = "EnforcementFell"      // the provider enforces limits less than the intent asks for
	DegradedGrantedLess    = "GrantedLess"          // the provider granted less than the contract
	DegradedNodeNotReady   = "NodeNotReady"
	// DegradedUnreachable: Liqo on the consumer does not reach the provider's API server.
	DegradedUnreachable = "ProviderUnreachable"

	// The following are the consumer's side, and are paid for.
	DegradedConsumerUnreachable = "ConsumerUnreachable"
	DegradedSliceMissing        = "SliceMissing" // slice or virtual node were removed on the consumer
	DegradedOffloading          = "OffloadingNotReady"
	DegradedBackOff             = v1alpha1.ReasonBackOff // the provider does not take the pods that are on the Node
)

// Why a contract that is Reserved or Peering is not further yet, next to what
// Degraded ones are missing.
const (
	WaitsForPeering  = "PeeringFailed"  // Liqo's authentication between the clusters cannot be made
	WaitsForDelivery = "DeliveryFailed" // an object cannot be applied on the consumer
)

// accrues reports whether a contract costs money in a phase for a reason's code.
func accrues(p v1alpha1.Phase, code string) bool {
	if p != v1alpha1.PhaseDegraded {
		return p.Charged()
	}
	switch code {
	case DegradedConsumerUnreachable, DegradedSliceMissing, DegradedOffloading, DegradedBackOff:
		return true
	}
	return false
}

// Transition is a copy of c in another phase from now on, with its cost up to
// now accounted for and its history extended. A step that the phase table does
// not have is refused. To go to Releasing, use Release.
func (b Books) Transition(c *v1alpha1.Contract, to v1alpha1.Phase, reason Reason, now v1alpha1.Time) (*v1alpha1.Contract, error) {
	from := c.Status.Phase
	if err := allowed(c, to); err != nil {
		return nil, err
	}
	var next *v1alpha1.Contract
	if from == "" {
		next = clone(c)
		next.Status.AccruedAt = From(c, now)
	} else {
		next = b.Settle(c, now)
	}
	enter(&next.Status, to, reason, now)
	if to == v1alpha1.PhaseReleasing && next.Status.Target == "" {
		next.Status.Target = v1alpha1.PhaseReleased
	}
	return next, nil
}

// enter writes a phase and its history into a status.
func enter(s *v1alpha1.ContractStatus, to v1alpha1.Phase, reason Reason, now v1alpha1.Time) {
	s.Phase, s.Since, s.Reason, s.Message = to, now, reason.Code, reason.Message
	s.History = append(slices.Clone(s.History), v1alpha1.PhaseChange{Phase: to, At: now, Reason: reason.Code, Message: reason.Message})
	if n := len(s.History) - maxHistory; n > 0 {
		s.History = s.History[n:]
	}
}

// Begin makes c, which nobody has seen yet, a contract that is Reserved from now
// on, with a reason where there is one: the first step of the phase table,
// without a copy.
func Begin(c *v1alpha1.Contract, reason Reason, now v1alpha1.Time) {
	begin(c, v1alpha1.PhaseReserved, reason, now)
}

func begin(c *v1alpha1.Contract, phase v1alpha1.Phase, reason Reason, now v1alpha1.Time) {
	c.Status = v1alpha1.ContractStatus{
		Phase: phase, Reason: reason.Code, Message: reason.Message, Since: now, AccruedAt: From(c, now),
		History: []v1alpha1.PhaseChange{{Phase: phase, At: now, Reason: reason.Code, Message: reason.Message}},
	}
}

// Explain is a copy of c in the same phase, for another reason. Its cost must
// not depend on the reason: a Degraded one takes Transition.
func Explain(c *v1alpha1.Contract, reason Reason) *v1alpha1.Contract {
	next := clone(c)
	next.Status.Reason, next.Status.Message = reason.Code, reason.Message
	return next
}

// Release is a copy of c on its way to an end: Releasing, with the end as its
// target.
func (b Books) Release(c *v1alpha1.Contract, target v1alpha1.Phase, reason Reason, now v1alpha1.Time) (*v1alpha1.Contract, error) {
	if !Ended(target) {
		return nil, fmt.Errorf("release contract %s: %s is not an end", c.Metadata.Name, target)
	}
	next, err := b.Transition(c, v1alpha1.PhaseReleasing, reason, now)
	if err != nil {
		return nil, err
	}
	next.Status.Target = target
	return next, nil
}

// Claim is a copy of a warm contract that has ended because another took over
// its slice as it is: Released at once, since nothing is to be drained or seen
// gone. Both must be written together, or the slice would belong to nobody.
func (b Books) Claim(c, by *v1alpha1.Contract, now v1alpha1.Time) (*v1alpha1.Contract, error) {
	if !c.Status.Phase.Charged() || by.Spec.Slice != c.Spec.Slice || by.Spec.Provider != c.Spec.Provider || by.Spec.Consumer != c.Spec.Consumer {
		return nil, fmt.Errorf("contract %s (%s) cannot be claimed by %s: only a charged one can, with the same slice", c.Metadata.Name, phaseText(c.Status.Phase), by.Metadata.Name)
	}
	next := b.Settle(c, now)
	enter(&next.Status, v1alpha1.PhaseReleased, Reason{ReasonClaimed, "by " + by.Metadata.Namespace + "/" + by.Spec.Intent.Name + " as " + by.Metadata.Name}, now)
	next.Status.Target = v1alpha1.PhaseReleased
	return next, nil
}

// ReasonClaimed is the reason of a warm contract whose slice another took over.
const ReasonClaimed = "Claimed"

// End is a copy of a Releasing contract at its target.
func (b Books) End(c *v1alpha1.Contract, reason Reason, now v1alpha1.Time) (*v1alpha1.Contract, error) {
	return b.Transition(c, c.Status.Target, reason, now)
}

func allowed(c *v1alpha1.Contract, to v1alpha1.Phase) error {
	from := c.Status.Phase
	if !slices.Contains(steps[from], to) {
		return fmt.Errorf("contract %s cannot go from %s to %s", c.Metadata.Name, phaseText(from), phaseText(to))
	}
	if from == v1alpha1.PhaseReleasing && to != c.Status.Target && to != v1alpha1.PhaseFailed {
		return fmt.Errorf("contract %s is being released as %s, not as %s", c.Metadata.Name, phaseText(c.Status.Target), to)
	}
	return nil
}

func phaseText(p v1alpha1.Phase) string {
	if p == "" {
		return "none"
	}
	return string(p)
}

// clone is a copy of a contract whose status may be changed. What lies below
// spec and decision is shared: those who change it replace it whole.
func clone(c *v1alpha1.Contract) *v1alpha1.Contract {
	next := *c
	return &next
}
