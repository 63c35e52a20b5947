package sim

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// byItsTerms reports whether a contract ends by its own terms or by what policy
// says of any contract, which go on while its intent cannot be read: freezing
// keeps the specification, never the terms.
func byItsTerms(ch change) bool {
	if ch.before == nil || ch.after == nil {
		return false
	}
	switch ch.after.Status.Reason {
	case lifecycle.CodeTermEnded, lifecycle.CodeMaxDuration, lifecycle.CodeDrain, lifecycle.CodeBudget,
		string(v1alpha1.Preempted), string(v1alpha1.Interrupted), string(v1alpha1.Reclaimed):
		return true
	}
	return false
}
