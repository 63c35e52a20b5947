// Package providers keeps, from one ledger to the next, what delivery asks of the
// providers of contracts: at which of them namespaces clash, and of which a consumer has
// contracts though no Cluster file describes them.
//
// # Invariants
//
//   - What it answers is what going through all contracts gives; the tests compare both.
//   - Following a ledger costs what differs from the one before, and nothing where both are
//     the same; other Cluster files cost one pass.
//
// The reconciler calls it in every round. Not safe for concurrent use.
package providers
