// Package delivery keeps consumer clusters in step with their manifests and
// says what it sees there.
//
//	Deliver ─► worker of rome  ─► load ─► decide ─► confirm ─► act ──► kube-apiserver
//	       └─► worker of oslo              ▲                             │
//	                                       └── informers ◄── watches ◄───┘
//	Observe ◄── informers
//
// Each consumer has a worker of its own: one that is slow or dead delays
// nobody. A worker handles units: a contract's slice, virtual node and Node
// together, or any other object alone. What is to be done for a unit follows
// from what is wanted and what the informers show, by functions that take and
// return values (decide.go); acting is dull.
//
// # Invariants
//
//   - What is applied is computed from contracts and Cluster files, with the
//     verified overlay over it (derive.go). The ledger's tree is compared with it,
//     and its bytes never go to a cluster; what differs is said, and the rest is
//     delivered. No kind, name, label or annotation reaches a cluster that no
//     rendering gives (manifests.Admissible).
//   - Nothing is written to a cluster without its Lease. Several daemons may
//     run; the one that holds it writes.
//   - Drift is corrected only after the remote repository was asked again and
//     still says what the worker goes by: a daemon that lags never recreates
//     what another one released.
//   - An object that is as wanted costs no call. An annotation carries the hash
//     of what was applied, so this holds over restarts too.
//   - Policies come first, and while one cannot be applied no virtual node is.
//   - A VirtualNode comes before its slice, and goes only once the slice in the
//     cluster says create-virtual-node "false"; the slice goes only once
//     VirtualNode and Node are gone. This holds even for objects whose
//     manifests vanished without a release.
//   - The last VirtualNode towards a provider stays until that of another contract
//     with it is there, if there is to be one: Liqo deletes with the last all that
//     is offloaded to the provider.
//   - Peerings with providers (peers.go) are made and renewed beside the passes,
//     so that a provider that does not answer delays nothing.
//   - Each fleet has its own Lease, ApplySet and field manager (package fleets). An
//     object of another fleet is refused by name and never touched.
//   - Only members of our ApplySet are pruned, and never a Namespace or a policy:
//     one that is no longer rendered is named, and is for who installed it.
//   - Absent is said only by who would know: in mode direct the holder of the
//     Lease, with the newest manifests applied and its caches in sync; beside
//     Flux or Argo CD once they have applied a commit with the newest manifests
//     (gitops.go). All else is Unknown.
//   - What stands in a contract's way is said by who delivers: in mode direct the
//     holder of the Lease, for as long as it has renewed it. Others are bystanders:
//     they know of no trouble, which says nothing.
//
// Where replicas share the clusters, package spread hands each of them its own part.
//
// Where the mode is agent the worker runs in the cluster's own agent (Unpacked)
// and remote.go stands in for it here: it hands the manifests out, lets the agent
// ask the repository before it acts, and takes its word for what is there.
//
// # Concurrency
//
// Deliver, Observe and Changed may be called from any goroutine and return at
// once; neither waits for a cluster. Close ends all workers and waits for them.
package delivery
