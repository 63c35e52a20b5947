package agent

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Labels that say which nodes are offered, and which are not nodes at all.
const (
	labelPool      = v1alpha1.Group + "/pool"
	labelResources = "node-role.fluidos.eu/resources"
	labelLiqoType  = "liqo.io/type"
	liqoVirtual    = "virtual-node"
)

// leaving are taints of nodes that an autoscaler is about to take away.
var leaving = map[string]bool{
	"ToBeDeletedByClusterAutoscaler": true, // cluster-autoscaler
	"karpenter.sh/disrupted":         true, // Karpenter
}

// isVirtual reports whether a node is another cluster's capacity.
func isVirtual(n *corev1.Node) bool { return n.Labels[labelLiqoType] == liqoVirtual }

// isOffered reports whether a node is labelled to be offered.
func isOffered(n *corev1.Node) bool {
	return !isVirtual(n) && (n.Labels[labelPool] != "" || n.Labels[labelResources] == "true")
}

// inService reports whether anything new may be sold on a node.
func inService(n *corev1.Node) bool {
	if n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		return false
	}
	for _, taint := range n.Spec.Taints {
		if leaving[taint.Key] {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// amounts are a Kubernetes resource list in our units.
var amounts = within.Amounts

// isShared reports whether a resource is one that all flavors cut from the same
// nodes have in common and that Kubernetes itself counts.
func isShared(name string) bool {
	switch name {
	case v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage:
		return true
	}
	return false
}

// isUsual reports whether a resource counts even where no node has it (any more).
func isUsual(name string) bool { return isShared(name) || isGPU(name) }

// isExtended reports whether a resource reaches a slice unchanged: a fully qualified one,
// such as rdma/hca, or huge pages of one size, which Kubernetes counts apart from memory.
func isExtended(name string) bool { return strings.Contains(name, "/") || isHugePages(name) }

func isHugePages(name string) bool { return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) }

// least is the smaller of both, name by name over a's names.
func least(a, b v1alpha1.Resources) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(a))
	for name, amount := range a {
		if b[name].Less(amount) {
			amount = b[name]
		}
		out[name] = amount
	}
	return out
}
