package wire

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// MarketAnswer is the market in JSON.
type MarketAnswer struct {
	// Market is the hash of its tree.
	Market  string            `json:"market"`
	Flavors []v1alpha1.Flavor `json:"flavors"`
}

// Readiness is the answer of /readyz and /readyz/agents.
type Readiness struct {
	Ready bool `json:"ready"`
	// Checks one by one; none to who may not see reasons.
	Checks []CheckResult `json:"checks"`
	Trust  *Trust        `json:"trust,omitempty"`
}

// CheckResult is one of Readiness.
type CheckResult struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Reason why it fails.
	Reason string `json:"reason,omitempty"`
}
