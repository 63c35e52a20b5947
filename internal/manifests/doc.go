// Package manifests renders contracts into the Kubernetes objects that make
// them real on a consumer cluster with Liqo: values in, files out.
//
//	contracts ─► Index ─► one ResourceSlice and one VirtualNode a contract, or one a share
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
//	<tenant>/<xx>/<contract>-virtualnode.yaml   or -virtualnode-1.yaml, -2, …: one a share
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
package manifests
