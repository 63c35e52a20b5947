// Package manifests renders contracts into the Kubernetes objects that make
// them real on a consumer cluster with Liqo: values in, files out.
//
//	contracts ─► Index ─► one ResourceSlice and one VirtualNode a contract, or one a share or node
//	                  └─► one file a namespace: Namespace, NamespaceOffloading, ResourceQuota
//	                  └─► admission policies, kustomizations
//
// Layout, below manifests/<consumer>/:
//
//	kustomization.yaml
//	namespaces/kustomization.yaml
//	namespaces/<namespace>.yaml             offloaded namespaces and Liqo's tenant namespaces
//	namespaces/policies/*.yaml              what keeps tenants apart
//	<tenant>/kustomization.yaml
//	<tenant>/<xx>/kustomization.yaml        <xx>: first two hex digits of SHA-256 of the intent's name
//	<tenant>/<xx>/<contract>-virtualnode.yaml   or -virtualnode-1.yaml, -2, …: one a share or node
//	<tenant>/<xx>/<contract>-slice.yaml
//
// Every directory with a kustomization.yaml is complete for `kubectl apply -k`;
// an empty one is not written at all, unless Flux or Argo CD applies: they
// would prune nothing of a directory that is gone.
//
// # Invariants
//
//   - Same contracts and clusters, same bytes: no clock, no map order.
//   - Update and All agree: rendering only what a change touches gives the
//     files that rendering everything gives (a property test holds it), but for
//     the empty directories of Flux and Argo CD, of which no contract tells.
//   - What Liqo v1.2.0 does not check is checked here: canonical quantities,
//     whole non-negative extended resources, every key explicit, the three
//     labels of a slice, selectors that match all virtual nodes of a provider.
//   - Where an intent says how virtual nodes are made (shares, a Secret), they are
//     complete in git and the slice says create-virtual-node "false" throughout.
//   - A VirtualNode never stands without its slice. Release goes in the order
//     that drains: first the slice says create-virtual-node "false" and the
//     VirtualNode goes, then, once the contract is marked drained, the slice.
//     A NamespaceOffloading goes when no contract is left that names it.
//   - Dropping a resource key from a contract would leave the old amount granted
//     for ever (Liqo only overwrites keys), so a resize that no longer wants a
//     resource must keep its key in the contract with "0".
//
// The package imports only api. Index is an immutable value: it may be shared
// between goroutines, and a planned round that is not pushed is simply dropped.
//
// # What a contract's state renders
//
//	                                      slice says            VirtualNode, intent    counts for the
//	                                      create-virtual-node   in the annotation      NamespaceOffloading
//	Reserved, Peering, Active, Degraded   "true"                yes                    yes
//	Releasing                             "false"               no                     yes
//	Releasing, drained                    no slice              no                     no
//	ended; stage find or reserve          no slice              no                     no
//
// The annotation is the Namespace's, of the intents that it may use.
//
// # Choices behind the objects
//
//   - With virtualNode.shares or virtualNode.kubeconfigSecretRef the VirtualNodes are
//     complete in git (credentials, size, the provider's nodes) and the slice says "false"
//     throughout: Liqo v1.2.0 makes exactly one of a slice, and does not adopt what has a
//     Secret of its own.
//   - A contract that names nodes has one VirtualNode for each, of its one slice, with that
//     node's part and pinned to the node by the label fleetbroker.io/node beside the flavor's
//     selector: the consumer's scheduler sees the true pieces, and no contract's pods take
//     another's. They are by hand too: Liqo puts the slice's node selector over that of a
//     virtual node that it makes itself. Nodes of a flavor's file have numbers and no label,
//     so that their parts are pinned to the pool. virtualNode.shares divide one node's part;
//     beside several nodes they are refused by name, because each part is a virtual node
//     already.
//   - Where contracts that share a namespace disagree, the oldest decides, and the
//     disagreement is a problem that is reported. A namespace belongs to one tenant.
//   - A pod selector becomes the Namespace annotation
//     pods.fleetbroker.io/<tenant>.<intent>: label=value,… (package podselector), because
//     admission policies cannot read JSON.
//   - A Namespace that must not be made carries fleetbroker.io/create: "false": the daemon
//     then only marks it where it exists. Flux and Argo CD make it.
//   - PreferNoSchedule on fleetbroker.io/remote keeps pods without accelerators at home
//     where a namespace is offloaded as LocalAndRemote.
//   - An overlay (overlays/<consumer>/) is a kustomize Component, or a Kustomization that
//     may list ../../manifests/<consumer> among its resources. One that changes what it
//     may not, or does not build, is ignored as a whole.
package manifests
