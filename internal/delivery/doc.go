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
//   - Beside Flux and Argo CD nobody holds a Lease, and nothing is applied. Beside Argo CD
//     virtual nodes are deleted that it leaves of a release (package drains), each by its
//     uid, after the remote repository was asked again: several daemons do that once.
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
//
// # One consumer
//
//	flowchart LR
//	  D[Deliver: tree of the acknowledged ledger] --> L[load: what changed, by file hash]
//	  W[watches] --> I[informers] --> E[events] --> Q
//	  L --> Q[dirty units]
//	  Q --> P[decide: wanted beside live, pure]
//	  P -->|nothing to do: no call| X[done]
//	  P --> C{brought by Deliver?}
//	  C -->|yes| A[act, stage by stage, under the Lease]
//	  C -->|no: drift, or a second try| R[Confirm: ask the remote again]
//	  R -->|the tree is still this one| A
//	  R -->|it moved on| Q
//	  A --> K[kube-apiserver] --> W
//	  I --> O[Observe]
//
// Fleets are told apart by package fleets; whose a cluster is among replicas says package
// spread, which stands between the reconciler and this one; kubeconfigs are in package
// access.
//
// Stages: policies and namespaces, quotas, contracts, offloadings, removals, removal of
// policies. While a policy cannot be applied, no virtual node and no offloading is.
//
// At rest a cluster gets eleven requests a minute: renewals of the Lease, which count as
// its answers, so that it is asked nothing else while it gives them. Whoever takes over
// from a dead daemon does so within 26 s (Takeover).
//
// # A contract, up and down
//
//	stateDiagram-v2
//	  direction LR
//	  [*] --> Up: apply VirtualNode, then slice
//	  Up --> Up: VirtualNode lost: apply it, poke the slice
//	  Up --> Draining: slice create-virtual-node "false", delete VirtualNode
//	  Draining --> Drained: VirtualNode and Node gone
//	  Drained --> [*]: delete slice
//
// Virtual nodes that Liqo does not make (shares of a slice, a Secret of people's) come the
// other way round: the slice, and they once it is granted. Liqo adopts none of them, and
// none is poked for.
//
// The last virtual node towards a provider stays until that of another contract with it is
// there, if the ledger has one: Liqo deletes with the last everything that is offloaded
// there. (Flux knows no such order; it applies what is new before it prunes. Nor does Argo
// CD, of virtual nodes that it prunes itself.)
//
// Manifests that vanish without a release go the same way: the slice is held, the
// VirtualNode deleted, and the slice deleted once both are gone.
//
// # Peerings
//
// Beside its passes a worker looks after the consumer's peerings: for each provider of
// which a contract is held it sees to Liqo's authentication, declaratively (package
// peering), when it comes to lead, when contracts come and go, and every five minutes. A
// provider that does not answer delays no pass; its contracts tell why they wait.
//
// # Rights of the daemon's account in a consumer
//
//   - core: namespaces: get list watch create patch
//   - core: nodes: get list watch
//   - core: pods: get list watch delete
//   - policy: poddisruptionbudgets: list
//   - core.liqo.io: foreignclusters: get list watch
//   - core: resourcequotas: get list watch create patch delete
//   - core: configmaps: get create patch
//   - coordination.k8s.io: leases: get create update
//   - authentication.liqo.io: resourceslices: get list watch create patch
//     delete
//   - offloading.liqo.io: virtualnodes, namespaceoffloadings: get list
//     watch create patch delete
//   - offloading.liqo.io: namespacemaps: list patch
//   - admissionregistration.k8s.io: validatingadmissionpolicies,
//     validatingadmissionpolicybindings, mutatingadmissionpolicies,
//     mutatingadmissionpolicybindings: get list watch; patch where the account is to
//     bring up to date what install/consumer makes
//   - kustomize.toolkit.fluxcd.io, source.toolkit.fluxcd.io: kustomizations,
//     gitrepositories (delivery: flux): get list watch
//   - argoproj.io: applications (delivery: argocd): get list watch
//
// In Liqo's namespace for each provider that it peers with: secrets get list create patch
// delete. What it needs on the provider for that stands in peering and install/provider.
//
// The namespace guard knows the account by the name
// system:serviceaccount:fleetbroker:fleetbroker; another account must be among the
// deliverers of the consumer's Cluster file, or in system:masters. TestModes runs one part
// with no other rights than these, and without those that only tell why something does not
// work.
//
// Pods, budgets and ForeignClusters only tell why something does not work: an account that
// may not read them says less, and does everything else.
//
// # What it says when
//
//   - cluster does not answer, or its watches broke for 30 s: everything Unknown, with why
//   - another daemon holds the Lease: presence, but never absence
//   - newest manifests not applied yet, or a call failed: presence; absence of that
//     contract Unknown
//   - Flux or Argo CD applies: presence; absence once they have applied the newest
//     manifests (or are not in the consumer)
//   - Flux or Argo CD is suspended, fails, or applies nothing of a tenant: the above, with
//     why
//   - mode agent: what the cluster's agent tells; absence only if it goes by the newest
//     manifests, and nothing once it is silent for 30 s
//   - mode none: nothing
//   - a slice that is not granted, and no peering: why there is no peering
//   - Liqo does not reach the provider's API server: so, as its ForeignCluster says
//   - pods of an offloaded namespace in OffloadingBackOff: offloading is not ready, with
//     their names
//   - a virtual node that is drained: which pods are left, and which PodDisruptionBudget
//     keeps them; that they were deleted once the release has taken the intent's
//     preemption.grace
//   - a provider that honours a contract again and holds nothing of it: nothing: the
//     ledger says so, and Liqo is reminded of slice and namespaces
package delivery
