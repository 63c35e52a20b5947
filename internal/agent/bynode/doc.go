// Package bynode is how an agent reports its flavors' nodes one by one without naming
// them: in groups of equal nodes by hash, what contracts hold on which of them, and which
// contracts lack a piece that the provider's own pods took later.
//
//	Nodes, Pods, promises ─► Hasher.Tell ─► groups, heldOn, short ─► report
//	                              │
//	                              └► Labeler: fleetbroker.io/node=<hash> on the node
//
// Only flavors with accelerators, cards or others such as TPUs, are reported so: a pod cannot
// have those of two nodes.
//
// # Hashes
//
// A node's hash is n and 65 bits of HMAC-SHA256 of its name, in 13 digits of base32hex.
// The key, the salt of the cluster, is the UID of the Namespace kube-system: random, never
// changed while the cluster exists, known to every replica of the agent after any restart
// without being kept anywhere, and unknown outside the cluster, so that names cannot be
// guessed from hashes and those of two clusters cannot be compared. Agents of two fleets in
// one cluster agree on it: a node has one label. The name is hashed and not the node's UID:
// a node that registers again under its name is the same place for a pod.
//
// # Invariants
//
//   - A node is reported only once it bears its label: a virtual node that is pinned to a
//     hash finds a node.
//   - The shapes of all nodes of a flavor have together no more than its capacity. A node
//     out of service has what runs there, as in the capacity; it is left out once no
//     contract has anything on it.
//   - A hash never changes, so that a node that leaves the offer keeps it while held.
//   - What is held on a node is never more than what is held (onnodes.Report).
//   - No more pieces are reported than MaxPieces: the slices on the most nodes are left out first.
//   - Equal clusters, equal reports: nothing depends on the order of maps or lists.
//
// # Topology
//
// Labels of nodes that are reported where the flavor's nodes differ in them (Topology):
//
//   - topology.kubernetes.io/* but region and zone, which are the flavor's location
//   - NVLink domains: nvidia.com/gpu.clique, ds.coreweave.com/nvlink.domain
//   - switches: network.topology.nvidia.com/*, fabric.topograph.run/* and
//     accelerator.topograph.run/* (NVIDIA Topograph), topology.k8s.aws/network-node-layer-*,
//     cloud.google.com/gce-topology-{block,subblock,host},
//     oci.oraclecloud.com/rdma.{hpc_island_id,network_block_id,local_block_id},
//     ib.coreweave.cloud/{fabric,superpod,leafgroup}
//   - racks: node.coreweave.cloud/rack
//
// A value that is the node's own name is left out.
//
// Tell and the hashes are pure and safe for concurrent use. A Labeler has one goroutine
// (Run); Want may be called from any.
package bynode
