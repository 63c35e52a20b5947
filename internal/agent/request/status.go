package request

import (
	"cmp"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// fail is a status that nothing will change any more.
func fail(s *crd.ResourceRequestStatus, reason, message string) {
	s.Phase, s.Reason, s.Message = crd.RequestFailed, reason, message
}

// answered is the status after a broker's answer.
func answered(s *crd.ResourceRequestStatus, got *wire.Reservation) {
	s.ReservationName, s.Commit = got.ID, got.Commit
	s.Reason, s.Message = "", got.Status.Message
	s.Contracts = nil
	for i := range got.Contracts {
		c := &got.Contracts[i]
		s.Contracts = append(s.Contracts, crd.RequestContract{Name: c.Name, Provider: c.Provider, Endpoint: c.Endpoint, Phase: string(c.Phase)})
	}
	s.Contract, s.TargetClusterID = got.Contract, got.TargetClusterID
	if at := got.Status.ReservedAt; at != nil {
		s.ReservedAt = timeOf(*at)
	}
	if at := got.Status.ExpiresAt; at != nil {
		s.ExpiresAt = timeOf(*at)
	}
	switch got.Status.Phase {
	case wire.PhasePending:
		s.Phase = crd.RequestPending
	case wire.PhaseActive:
		s.Phase = crd.RequestActive
	case wire.PhaseFailed:
		s.Phase = crd.RequestFailed
	case wire.PhaseReleased:
		s.Phase = crd.RequestReleased
	default:
		s.Phase = crd.RequestReserved
	}
}

// follow brings a status in line with what the ledger says by now. Instructions
// that are older than the reservation say nothing of it.
func follow(s *crd.ResourceRequestStatus, cluster, uid string, in *wire.Instructions) {
	if in == nil {
		return
	}
	id := wire.ReservationID(cluster, uid)
	var state *wire.RequestState
	for i := range in.Requests {
		if in.Requests[i].ID == id {
			state = &in.Requests[i]
		}
	}
	if state == nil {
		if s.ReservedAt != nil && in.At.After(s.ReservedAt.Time) {
			s.Phase, s.Reason, s.Message = crd.RequestReleased, "", "the ledger has it no longer"
			s.Contracts = nil
		}
		return
	}
	var live []*wire.Instruction
	for i := range in.Consume {
		if c := &in.Consume[i]; c.Request && c.Intent == id {
			live = append(live, c)
		}
	}
	s.Contracts = nil
	for _, c := range live {
		s.Contracts = append(s.Contracts, crd.RequestContract{Name: c.Contract, Provider: c.Provider, Endpoint: c.ProviderEndpoint, Phase: string(c.Phase)})
	}
	phase, reason, message := phaseOf(live)
	if phase == "" {
		switch state.State {
		case v1alpha1.IntentQueued, v1alpha1.IntentBooked, v1alpha1.IntentPlaced, "":
			phase = crd.RequestPending
		case v1alpha1.IntentRefused:
			phase = crd.RequestFailed
		default:
			phase = crd.RequestReleased
		}
	}
	s.Phase, s.Reason, s.Message = phase, cmp.Or(reason, state.Reason), cmp.Or(message, state.Message)
	for _, c := range live {
		if !c.Phase.Charged() {
			continue
		}
		s.Contract, s.TargetClusterID = c.Contract, c.Provider
		s.ReservedAt, s.ExpiresAt = timeOf(c.Term.Start.Time), timeOf(c.Term.End.Time)
		break
	}
}

// phaseOf is where the contracts of a request stand together, "" when none
// counts.
func phaseOf(live []*wire.Instruction) (phase, reason, message string) {
	active, charged := true, 0
	for _, c := range live {
		if !c.Phase.Charged() {
			continue
		}
		charged++
		active = active && c.Phase == v1alpha1.PhaseActive
		if c.Phase == v1alpha1.PhaseDegraded && reason == "" {
			reason, message = "Degraded", c.Contract+": "+c.Why()
		}
	}
	switch {
	case charged == 0:
		return "", "", ""
	case reason != "":
		return crd.RequestDegraded, reason, message
	case active:
		return crd.RequestActive, "", ""
	}
	return crd.RequestReserved, "", ""
}
