package model

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// Change is one contract before and after: Before is nil for a new one, After
// for one that leaves the tree (retention).
type Change struct {
	Before, After *v1alpha1.Contract
	// StatusOnly marks changes that may wait for statusInterval (Peering, Degraded, recovery).
	StatusOnly bool
}

// StateChange is one intent's state before and after; After nil removes it.
type StateChange struct {
	Before, After *v1alpha1.IntentState
	// From is the name that the intent has in the ledger so far, "" when it is the
	// same: its state goes on in After, so that both belong into one commit.
	From string
}

// Last is the contract as it is, or as it was before it left the tree.
func (c *Change) Last() *v1alpha1.Contract {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// Last is the state as it is, or as it was before it was removed.
func (c *StateChange) Last() *v1alpha1.IntentState {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
