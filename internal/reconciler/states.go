package reconciler

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// States are the held contracts as the newest round saw them, by name: the
// ledger's, moved along by what the round found and has not written yet.
func (v *View) States() []wire.ContractState {
	if v.Contracts == nil || v.Plan == nil {
		return nil
	}
	seen := map[string]*v1alpha1.Contract{}
	for _, c := range v.Plan.Contracts {
		if c.After != nil {
			seen[c.After.Metadata.Name] = c.After
		}
	}
	var out []wire.ContractState
	add := func(c *v1alpha1.Contract, committed v1alpha1.Phase) {
		if !c.Status.Phase.Held() {
			return
		}
		one := wire.ContractState{
			Name: c.Metadata.Name, Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name,
			Consumer: c.Spec.Consumer, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor,
			Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message, Since: c.Status.Since,
		}
		seen := v.World.Observed.Of(c.Metadata.Name).Consumer
		away := !seen.Reachable && seen.Message != ""
		switch {
		case c.Status.Phase == v1alpha1.PhaseReleasing && away:
			one.Blockers = []string{seen.Message}
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			one.Blockers = seen.Blockers
		case c.Status.Phase == v1alpha1.PhaseActive && away:
			// Nothing was seen to be wrong, so that the ledger says nothing of it.
			one.Reason, one.Message = ledger.DegradedConsumerUnreachable, seen.Message+"; it was Active when last seen"
		}
		if committed != c.Status.Phase {
			one.Committed = committed
		}
		out = append(out, one)
	}
	for c := range v.Contracts.Contracts() {
		now, phase := c, c.Status.Phase
		if after := seen[c.Metadata.Name]; after != nil {
			now = after
		}
		add(now, phase)
	}
	return out
}
