package reconciler

import (
	"cmp"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
)

// reservationOf is the answer to a request: what the ledger holds for it.
func reservationOf(f *fleet.Fleet, it *model.Intent, contracts []*v1alpha1.Contract, state *v1alpha1.IntentState, commit tree.Hash) wire.Reservation {
	out := wire.Reservation{
		ID: it.Metadata.Name, RequesterID: it.Metadata.Annotations[v1alpha1.AnnotationRequestedBy],
		Requested: asked(&it.Spec.Resources),
		Tenant:    it.Metadata.Namespace, Commit: commit.String(), Path: it.Path,
	}
	if at, err := time.Parse(timeLayout, it.Metadata.Annotations[v1alpha1.AnnotationRequestedAt]); err == nil {
		out.CreatedAt = at
	}
	best := -1
	for _, c := range contracts {
		if !c.Status.Phase.Held() {
			continue
		}
		one := wire.ReservedContract{
			Name: c.Metadata.Name, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Endpoint: endpointOf(f, c), Slice: c.Spec.Slice,
			Resources: c.Spec.Resources, Price: c.Spec.Price, Term: c.Spec.Term, Phase: c.Status.Phase, Decision: &c.Decision,
		}
		out.Contracts = append(out.Contracts, one)
		if best < 0 {
			best = len(out.Contracts) - 1
			out.Contract, out.TargetClusterID = one.Name, one.Provider
			out.Status.ReservedAt, out.Status.ExpiresAt = instant(c.Spec.Term.Start), instant(c.Spec.Term.End)
		}
	}
	out.Status.Phase, out.Status.Message = phaseOf(out.Contracts, state)
	return out
}

// phaseOf is where a reservation stands in the first form's words. It is
// Pending only while it waits: that is what the answer's status goes by.
func phaseOf(contracts []wire.ReservedContract, state *v1alpha1.IntentState) (phase, message string) {
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

// asked are the quantities of a request in the first form's words.
func asked(q *v1alpha1.ResourceRequest) wire.Quantities {
	named := q.Named.Clone()
	if q.GPU != nil {
		named = named.Add(v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(int64(max(q.GPU.Count, 1)))})
	}
	return texts(named)
}
