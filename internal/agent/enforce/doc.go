// Package enforce makes a provider give exactly what the ledger says: it is
// Liqo's ResourceSlice class controller for the class fleetbroker.
//
//	brokers ──instructions──► Book ─┐
//	ResourceSlices, Tenants ────────┼─► Decide ──► status.resources, nodeSelector,
//	Collect ──flavors──► Offers ────┘    pure       nodeLabels, condition Resources
//
// Liqo authenticates a slice; of other classes than its own it leaves the
// condition Resources to whoever answers, which is here (Liqo v1.2.0,
// pkg/liqo-controller-manager/authentication/remoteresourceslice-controller).
//
// # What is decided
//
//   - A slice is granted what a standing contract says for this slice of this
//     consumer, no more and no less, pinned to the flavor's nodes.
//   - One without a contract, or larger than it, is denied: not at once, because
//     a slice and its instruction travel apart and either may arrive first,
//     and only after a broker has confirmed that nothing is missing.
//   - When its contract stands no longer, GPUs, other extended resources and
//     pods go to zero, CPU and memory are kept, and then the slice is denied.
//     With CPU or memory at zero the consumer's Node would become NotReady and
//     its pods would die past any disruption budget; running pods are the
//     consumer's to drain. Denied alone would change nothing there.
//   - A Tenant that is Cordoned gets nothing new and keeps what it has; Drained
//     withdraws everything.
//   - What the flavor's nodes no longer have, because the provider's own
//     workloads came first, is refused: the slice is denied and the refusal
//     reported, so that the broker ends the contract and plans again elsewhere.
//     What was granted stays granted: there the broker sees that the flavor
//     shrank, and decides. A granted contract that grew keeps its old size, and
//     that there is no room for the new one is refused the same way: the broker
//     moves it, or keeps it as it is until there is room.
//
// # While the brokers are silent
//
// What stands is kept and nothing new is granted, nothing denied and nothing
// withdrawn, also past the end of a term: whether the term was renewed is what
// cannot be heard. That holds across a restart: a slice's status is the memory.
// Of several brokers the list with the newest position in the ledger counts, so
// that one that lags brings nothing back.
//
// # Labels of the node
//
// What is granted names, as labels of the consumer's Node, the cards and the
// contract. Labels of the group fleetbroker.io itself are never written: Liqo
// would put them over the ones that the broker's own manifests give the virtual
// node.
//
// # Concurrency
//
// Decide is pure. A Book and a Reconciler may be used from several goroutines;
// the Reconciler's work is done by one worker, so that two slices never take
// the same free capacity.
package enforce
