package requests

import (
	"cmp"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// PhaseOf is where a reservation stands in the first form's words. It is
// Pending only while it waits: that is what the answer's status goes by.
func PhaseOf(contracts []wire.ReservedContract, state *v1alpha1.IntentState) (phase, message string) {
	if len(contracts) > 0 {
		active := true
		charged := false
		for i := range contracts {
			active = active && contracts[i].Phase == v1alpha1.PhaseActive
			charged = charged || contracts[i].Phase.Charged()
		}
		first := &contracts[0]
		text := first.Provider + "/" + first.Flavor + " for " + first.Price.Hourly.Text() + " " + first.Price.Currency + "/h"
		switch {
		case !charged:
			return wire.PhaseReleased, "being released from " + text
		case active:
			return wire.PhaseActive, text
		}
		return wire.PhaseReserved, text
	}
	if state == nil {
		return wire.PhasePending, ""
	}
	words := cmp.Or(state.Status.Message, state.Status.Reason)
	switch state.Status.State {
	case v1alpha1.IntentQueued, v1alpha1.IntentBooked, v1alpha1.IntentPlaced:
		return wire.PhasePending, words
	case v1alpha1.IntentRefused:
		return wire.PhaseFailed, words
	}
	return wire.PhaseReleased, words
}
