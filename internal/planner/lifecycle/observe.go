package lifecycle

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// View is what is known of a contract next to the ledger.
type View struct {
	Now v1alpha1.Time
	// Observed is what its clusters report.
	Observed v1alpha1.Observation
	// Offer of its flavor, nil when the market does not have it.
	Offer *model.Offer
	// Grace is how long the fleet accepts trouble before it acts.
	Grace time.Duration
	// Deaf: this replica has no reports yet, because it has just started. What looks
	// stale may be its own connections.
	Deaf bool
	// KeepsSilence: a contract that is Degraded because no report came stays so until
	// its provider reports, although the market does not have its flavor any more.
	KeepsSilence bool
	// Cluster of its provider, nil for one that nobody described.
	Cluster *v1alpha1.Cluster
	// Excess: its flavor has less than it sold, and cannot hold this contract.
	Excess bool
	// Lacking is why one of its nodes cannot hold it, while its flavor could.
	Lacking string
	// ByNode: what its provider refuses it for one of its nodes is that node's lack.
	ByNode bool
	// Forced is why an operator ends it without it being seen gone, none where nobody
	// does.
	Forced ledger.Reason
}

// Transition is the phase in which a contract is seen to be.
type Transition struct {
	Phase v1alpha1.Phase
	// Reason when it is Degraded, or not Active yet.
	Reason ledger.Reason
	// Due is when the same may be seen otherwise though nothing changed; zero: never.
	Due v1alpha1.Time
}

// Moves reports whether a transition is worth a new version of its contract: the
// message may change by the second, so that the code decides. Where its manifests
// cannot be applied the newest trouble is to be fixed: its message is written as
// well, as a change of status only, which is committed once a status interval.
func (t Transition) Moves(c *v1alpha1.Contract) bool {
	return t.Phase != c.Status.Phase || t.Reason.Code != c.Status.Reason || t.Rewords(c)
}

// Rewords reports whether a transition only changes the message of a contract whose
// phase and code stay as they are.
func (t Transition) Rewords(c *v1alpha1.Contract) bool {
	return t.Phase == c.Status.Phase && t.Reason.Code == c.Status.Reason &&
		t.Reason.Code == ledger.WaitsForDelivery && t.Reason.Message != c.Status.Message
}

// Apply is a contract after a transition, the very same where it does not move or the
// phase table has no such step. statusOnly: it may wait for the status interval.
func (t Transition) Apply(books ledger.Books, c *v1alpha1.Contract, now v1alpha1.Time) (next *v1alpha1.Contract, statusOnly bool) {
	if !t.Moves(c) {
		return c, false
	}
	if t.Phase == c.Status.Phase && t.Phase != v1alpha1.PhaseDegraded {
		return ledger.Explain(c, t.Reason), true
	}
	next, err := books.Transition(c, t.Phase, t.Reason, now)
	if err != nil {
		return c, false
	}
	return next, t.Phase != v1alpha1.PhaseActive || c.Status.Phase == v1alpha1.PhaseDegraded
}

func degraded(code, message string) Transition {
	return Transition{Phase: v1alpha1.PhaseDegraded, Reason: because(code, message)}
}

// as is the transition of a contract that stays as it is.
func as(c *v1alpha1.Contract) Transition {
	return Transition{Phase: c.Status.Phase, Reason: ledger.ReasonOf(c)}
}

// Observe is the phase in which a charged contract is seen to be, with the reason when
// it is Degraded or not Active yet. What nobody has seen changes nothing.
func Observe(c *v1alpha1.Contract, v *View) Transition {
	o := v.Offer
	switch {
	case v.Deaf && o != nil && (o.State == model.Lost || o.State == model.Silent):
		return as(c)
	case o != nil && o.State == model.Elsewhere:
		return as(c)
	case o != nil && o.State == model.Lost:
		return degraded(ledger.DegradedProviderLost, c.Spec.Provider+" is not heard since "+stamp(o.Since))
	case o != nil && o.State == model.Silent:
		return degraded(ledger.DegradedProviderSilent, c.Spec.Provider+" is not heard since "+stamp(o.Since))
	case v.KeepsSilence && o != nil && o.State == model.Withdrawn && saysSilent(c) && !v.Observed.ProviderSeen:
		return as(c)
	case v.ByNode && onnodes.RefusedFor(refusal(o, c)) != "":
		return degraded(ledger.DegradedNode, refusal(o, c))
	case refusal(o, c) != "":
		return degraded(ledger.DegradedRefused, refusal(o, c))
	case v.Lacking != "":
		return degraded(ledger.DegradedNode, v.Lacking)
	case v.Excess:
		return degraded(ledger.DegradedShrunk, c.Spec.Provider+"/"+c.Spec.Flavor+" has less than it sold")
	case c.Spec.Stage == v1alpha1.StageReserve && c.Status.Phase == v1alpha1.PhaseReserved:
		return as(c)
	case c.Spec.Stage == v1alpha1.StageReserve:
		return Transition{Phase: v1alpha1.PhaseReserved}
	case notHeld(c, v):
		return degraded(ledger.DegradedNotHeld, c.Spec.Provider+" honours it again and holds nothing of it yet: its slice is replicated anew")
	}
	if level := fallen(c, v); level != "" {
		return degraded(ledger.DegradedEnforcement, "Liqo's limits enforcement on "+c.Spec.Provider+" is "+level+", the contract asks for "+string(c.Spec.Enforcement))
	}
	if obs := &v.Observed.Consumer; !obs.Reachable || obs.Slice == v1alpha1.Unknown {
		return unseen(c, v)
	}
	return seen(c, v)
}

// fallen is the level at which limits are enforced where a contract is, if it is known
// and below what the contract asks for; else "".
func fallen(c *v1alpha1.Contract, v *View) string {
	if c.Spec.Enforcement == "" || v.Offer == nil || v.Offer.State == model.Withdrawn {
		return ""
	}
	level := v1alpha1.EnforcementOf(v.Offer.Flavor, v.Cluster)
	if level == "" || !v1alpha1.Enforcement(level).Below(c.Spec.Enforcement) || c.Spec.Stage == v1alpha1.StageReserve {
		return ""
	}
	return level
}

// seen is the phase of a contract of which the consumer reports.
func seen(c *v1alpha1.Contract, v *View) Transition {
	obs := &v.Observed.Consumer
	missing, exact := Missing(c, obs)
	var due v1alpha1.Time
	if missing.Code != "" {
		grows, until := growing(c, v)
		if grows {
			return Transition{Phase: c.Status.Phase, Due: until}
		}
		due = until
	}
	wasActive := c.Status.Phase == v1alpha1.PhaseActive || (c.Status.Phase == v1alpha1.PhaseDegraded && BeenActive(c))
	t := Transition{Due: due}
	switch {
	case missing.Code == "" && (exact || wasActive):
		t.Phase = v1alpha1.PhaseActive
	case obs.SliceDenied != "", wasActive:
		t.Phase, t.Reason = v1alpha1.PhaseDegraded, missing
	case obs.Slice == v1alpha1.Present, c.Status.Phase == v1alpha1.PhasePeering:
		t.Phase, t.Reason = v1alpha1.PhasePeering, waits(c, v1alpha1.PhasePeering, obs, missing)
	default:
		t.Phase, t.Reason = v1alpha1.PhaseReserved, waits(c, v1alpha1.PhaseReserved, obs, ledger.Reason{})
	}
	return t
}

// saysSilent reports whether a contract is Degraded because its provider does not
// report.
func saysSilent(c *v1alpha1.Contract) bool {
	code := c.Status.Reason
	return c.Status.Phase == v1alpha1.PhaseDegraded && (code == ledger.DegradedProviderLost || code == ledger.DegradedProviderSilent)
}

// refusal is why a contract's provider reports that it does not honour it, "" when it does.
// A refusal for a node on which the contract lies no more is older than its present nodes.
func refusal(o *model.Offer, c *v1alpha1.Contract) string {
	if o == nil || len(o.Flavor.Spec.Refused) == 0 {
		return ""
	}
	why := o.Flavor.Spec.Refused[c.Metadata.Name]
	if node := onnodes.RefusedFor(why); node != "" && remapped(c) && !slices.ContainsFunc(c.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return n.Node == node }) {
		return ""
	}
	return why
}

// remapped reports whether a part of a contract was given another node.
func remapped(c *v1alpha1.Contract) bool {
	return slices.ContainsFunc(c.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return n.Part > 0 })
}

// notHeld reports whether a provider that refused a contract does not refuse it any
// more, and holds nothing of it yet: a Tenant that was Drained took it away, and the
// consumer's slice still shows Accepted.
func notHeld(c *v1alpha1.Contract, v *View) bool {
	if c.Status.Phase != v1alpha1.PhaseDegraded || v.Offer == nil || v.Offer.Static {
		return false
	}
	if code := c.Status.Reason; code != ledger.DegradedRefused && code != ledger.DegradedNotHeld {
		return false
	}
	return providerGone(c, v, false)
}

// waits is why a contract in a phase is not Active yet: the trouble of its delivery,
// else what its clusters have not done. Where another replica delivers, its trouble is
// not known here, and what was written of it stays.
func waits(c *v1alpha1.Contract, phase v1alpha1.Phase, obs *v1alpha1.ConsumerObservation, missing ledger.Reason) ledger.Reason {
	switch {
	case obs.Bystander && phase == c.Status.Phase:
		return ledger.ReasonOf(c)
	case obs.Message != "":
		return because(ledger.WaitsForDelivery, obs.Message)
	case obs.PeeringMessage != "":
		return because(ledger.WaitsForPeering, obs.PeeringMessage)
	}
	return missing
}

// unseen is the phase of a contract whose consumer reports nothing: as it was, but for
// a provider's trouble that is over. One that waits to be delivered records why its
// consumer cannot be reached, or what keeps its manifests from it.
func unseen(c *v1alpha1.Contract, v *View) Transition {
	obs := &v.Observed.Consumer
	if obs.Bystander && !obs.Reachable { // records of the past alone have it
		return as(c)
	}
	if c.Status.Phase != v1alpha1.PhaseDegraded {
		switch {
		case c.Status.Phase == v1alpha1.PhaseActive || obs.Message == "":
			return as(c)
		case obs.Reachable:
			return Transition{Phase: c.Status.Phase, Reason: because(ledger.WaitsForDelivery, obs.Message)}
		}
		return Transition{Phase: c.Status.Phase, Reason: because(ledger.DegradedConsumerUnreachable, obs.Message)}
	}
	switch c.Status.Reason {
	case ledger.DegradedProviderSilent, ledger.DegradedProviderLost, ledger.DegradedShrunk, ledger.DegradedNode, ledger.DegradedRefused, ledger.DegradedEnforcement:
		if v.Offer == nil {
			break // the market does not know the flavor yet
		}
		for _, h := range slices.Backward(c.Status.History) {
			if h.Phase != v1alpha1.PhaseDegraded {
				return Transition{Phase: h.Phase}
			}
		}
		return Transition{Phase: v1alpha1.PhaseReserved}
	}
	return as(c)
}

// growing reports whether an Active contract was resized a moment ago and only waits
// for its provider and Node to follow: no trouble within a grace period, which ends at
// until. (Resizing writes down what was accrued; entering a phase does so too, at its
// since.)
func growing(c *v1alpha1.Contract, v *View) (is bool, until v1alpha1.Time) {
	s := &c.Status
	if s.Phase != v1alpha1.PhaseActive || !s.AccruedAt.After(s.Since.Time) && s.AccruedAt != v.Now {
		return false, until
	}
	obs := v.Observed.Consumer
	obs.Granted, obs.Allocatable = c.Spec.Resources, c.Spec.Resources
	if missing, _ := Missing(c, &obs); missing.Code != "" {
		return false, until
	}
	until = v1alpha1.TimeOf(s.AccruedAt.Add(v.Grace))
	if !s.AccruedAt.After(s.Since.Time) {
		until = v1alpha1.Time{Time: v.Now.Add(time.Second)} // of this very instant: a moment later nothing shows that it was resized
	}
	return until.After(v.Now.Time), until
}

// BeenActive reports whether a contract's history has it Active.
func BeenActive(c *v1alpha1.Contract) bool {
	return slices.ContainsFunc(c.Status.History, func(h v1alpha1.PhaseChange) bool { return h.Phase == v1alpha1.PhaseActive })
}
