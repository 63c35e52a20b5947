package doctor

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// NodeNotes says of which clusters flavors with accelerators do not show how they lie on
// nodes, so that all of a flavor counts as one node: of agents by the nodes that do not
// bear their hash, of files by what they state. Only clusters that were looked at count.
func NodeNotes(clusters map[string]*Cluster, files []*v1alpha1.Flavor) []string {
	var out []string
	for name, c := range clusters {
		with := c.all(Nodes, func(n *unstructured.Unstructured) bool { return offered(n) && accelerated(n) })
		bare := slices.DeleteFunc(slices.Clone(with), func(n *unstructured.Unstructured) bool { return onnodes.IsHash(n.GetLabels()[v1alpha1.LabelNode]) })
		if len(bare) > 0 {
			out = append(out, fmt.Sprintf("cluster %s: %d of %d offered nodes with accelerators have no label %s: their agent reports pools there, and a pod may ask for more than one node has free; let the agent patch nodes and get Namespace kube-system (install/agent/rbac.yaml)",
				name, len(bare), len(with), v1alpha1.LabelNode))
		}
	}
	for _, f := range files {
		s := &f.Spec
		if clusters[f.Metadata.Namespace] != nil && s.Nodes == nil && slices.ContainsFunc(s.Capacity.Names(), func(r string) bool { return accelerators.Is(r, nil) && !s.Capacity[r].IsZero() }) {
			out = append(out, fmt.Sprintf("flavor %s of a file states no nodes: all of it counts as one node; write nodes: {count: <how many>, size: {<what one has>}}", f.Ref()))
		}
	}
	slices.Sort(out)
	return out
}

// accelerated reports whether a Node has accelerators for pods.
func accelerated(n *unstructured.Unstructured) bool {
	has := amounts(n, "status", "allocatable")
	return slices.ContainsFunc(has.Names(), func(r string) bool { return accelerators.Is(r, nil) && !has[r].IsZero() })
}
