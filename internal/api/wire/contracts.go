package wire

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// ContractsPath is the operators' route of all held contracts as they are seen
// now, also what is not on the ledger yet (Peering, Degraded and recovery are
// written at most every statusInterval).
const ContractsPath = "/api/ui/contracts"

// ContractState is one held contract as it is seen now.
type ContractState struct {
	Name     string         `json:"name"`
	Tenant   string         `json:"tenant"`
	Intent   string         `json:"intent"`
	Consumer string         `json:"consumer"`
	Provider string         `json:"provider"`
	Flavor   string         `json:"flavor"`
	Phase    v1alpha1.Phase `json:"phase"`
	// Reason, a code, when it is not well, not Active yet, or is ending, or its
	// consumer cannot be reached; Message for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Blockers hold a release up: pods that are left on the Node, each with the
	// PodDisruptionBudget that keeps it, or why the consumer cannot be reached.
	Blockers []string      `json:"blockers,omitempty"`
	Since    v1alpha1.Time `json:"since"`
	// Committed is the phase on the ledger where that is another.
	Committed v1alpha1.Phase `json:"committed,omitempty"`
}

// Why is the contract's reason in one line: "<reason>: <message>".
func (s *ContractState) Why() string {
	return (&v1alpha1.ContractStatus{Reason: s.Reason, Message: s.Message}).Why()
}
