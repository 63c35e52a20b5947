// Package consumers asks consumer clusters, each by a kubeconfig on the reader's machine,
// for what neither the fleet repo nor its ledger has: the health of Liqo's modules of
// each peering (ForeignCluster, core.liqo.io/v1beta1) and the virtual nodes.
//
// Nothing is changed in a cluster; each has ten seconds to answer, and one that does not
// answer hides no other. `status` and `get peerings` of internal/cli call it. Ask is safe
// for concurrent use.
package consumers
