// Package policymatch judges policies of the fleet, and makes one CEL condition of each: what
// the policy requires, wherever the offer is one that the policy's match names.
//
// What match says of the intent (tenants, consumers, labels) is no part of it: that is
// model.Policy.Binds, asked once for each intent. Invariant: the condition is true of
// every offer that match does not select, and equals require of every other. Package
// fleet calls it when it reads and when it checks fleet.yaml; its functions keep nothing
// and are safe for concurrent use.
package policymatch
