// Package inmem holds a fleet's clusters in memory: consumers with Liqo's controllers and
// a scheduler, providers with nodes and an agent. No API server runs.
//
//	manifests of the ledger ─► Deliver ─► slices, virtual nodes, offloadings
//	                                          │ one step each Pace
//	                     Observe ◄── granted, node ready, gone
//	                     Daemon.Report ◄── flavors, what slices hold
//
// Invariants, as of the real ones (packages delivery and agent):
//   - Nothing is written to a consumer before Daemon.Confirm answers with the tree that
//     was delivered.
//   - Up: the virtual node before the slice. Down: pods are evicted, then the node goes,
//     then the slice, then the provider's grant.
//   - A provider grants a slice only while the ledger's instructions list it, and reports
//     their number once it has carried them out.
//   - What is absent is reported absent only after a whole pass on the delivered tree.
//
// Left out: the Lease (one daemon alone), admission policies, drift, failures.
//
// `fleetbroker demo --quick` uses it (internal/cli/quick). A Clusters is safe for
// concurrent use; Run is called once.
package inmem
