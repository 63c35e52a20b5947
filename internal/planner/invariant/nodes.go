package invariant

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// overNode is how a contract oversells a node of its flavor after the plan, or names nodes
// that do not add up to what it has; "" where it does neither.
func (a *aftermath) overNode(f *v1alpha1.Flavor, pool []*v1alpha1.Flavor, c *v1alpha1.Contract) string {
	if len(c.Spec.Nodes) == 0 {
		return ""
	}
	if len(c.Spec.Nodes) > ledger.MaxNodes {
		return fmt.Sprintf("%d nodes of %s are more than a slice may have: %d", len(c.Spec.Nodes), f.Ref(), ledger.MaxNodes)
	}
	sum := v1alpha1.Resources{}
	for i := range c.Spec.Nodes {
		for name, n := range c.Spec.Nodes[i].Resources {
			sum[name] = sum[name].Add(n)
		}
	}
	for _, name := range sum.Max(c.Spec.Resources).Names() {
		if sum[name] != c.Spec.Resources[name] {
			return fmt.Sprintf("its nodes have %s %s together, and it has %s", sum[name].Canonical(name), name, c.Spec.Resources[name].Canonical(name))
		}
	}
	h, known := a.nodes[f]
	if !known {
		var members []ledger.Member
		for _, m := range pool {
			members = append(members, a.memberOf(m))
		}
		held := ledger.NodesHeldOf(a.memberOf(f), members)
		h = &held
		a.nodes[f] = h
	}
	if node, name, over := h.Oversold(c); over {
		return fmt.Sprintf("%s of node %s of %s would be oversold", name, node, f.Ref())
	}
	return ""
}
