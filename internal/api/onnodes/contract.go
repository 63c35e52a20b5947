package onnodes

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Contract checks the nodes of a contract: at most v1alpha1.MaxShares of them, each once,
// which have together exactly what the contract has. Shares divide one node's part.
func Contract(c *v1alpha1.Contract) error {
	nodes := c.Spec.Nodes
	if len(nodes) == 0 {
		return nil
	}
	if len(nodes) > v1alpha1.MaxShares {
		return fmt.Errorf("spec.nodes: %d nodes, and one slice has at most %d virtual nodes", len(nodes), v1alpha1.MaxShares)
	}
	sum, seen, parts := v1alpha1.Resources{}, map[string]bool{}, map[int32]bool{}
	for i, n := range nodes {
		if !IsHash(n.Node) && !numberForm.MatchString(n.Node) {
			return fmt.Errorf("spec.nodes[%d].node: %.80q is neither a node's hash nor a number from 0", i, n.Node)
		}
		if IsHash(n.Node) != IsHash(nodes[0].Node) {
			return fmt.Errorf("spec.nodes[%d].node: %s is a hash or a number, and spec.nodes[0].node is the other", i, n.Node)
		}
		if seen[n.Node] {
			return fmt.Errorf("spec.nodes[%d].node: node %s is listed twice", i, n.Node)
		}
		seen[n.Node] = true
		if n.Part < 0 || parts[c.Spec.Part(i)] {
			return fmt.Errorf("spec.nodes[%d].part: %d is no number from 1, or another part's", i, n.Part)
		}
		parts[c.Spec.Part(i)] = true
		if err := amounts(fmt.Sprintf("spec.nodes[%d].resources", i), n.Resources); err != nil {
			return err
		}
		for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory} {
			if n.Resources[name].IsZero() {
				return fmt.Errorf("spec.nodes[%d].resources: %s is 0: a Node without it is never ready", i, name)
			}
		}
		sum = sum.Add(n.Resources)
	}
	for _, name := range sum.Max(c.Spec.Resources).Names() {
		if has, all := c.Spec.Resources[name], sum[name]; has != all {
			return fmt.Errorf("spec.nodes have %s %s together, and spec.resources has %s", all.Canonical(name), name, has.Canonical(name))
		}
	}
	if len(nodes) > 1 && c.Spec.VirtualNode.IsShared() {
		return fmt.Errorf("virtualNode.shares divide the part of one node, and the contract lies on %d: take the shares out, since each node's part is a virtual node of its own", len(nodes))
	}
	return nil
}
