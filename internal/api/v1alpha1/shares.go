package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// SecretKubeconfig is the key under which Liqo reads a kubeconfig in a Secret.
const SecretKubeconfig = "kubeconfig"

// ByHand reports whether the virtual nodes are made from manifests alone. Liqo
// makes one of the slice otherwise.
func (v *VirtualNodeSpec) ByHand() bool {
	return v != nil && (len(v.Shares) > 0 || v.secret() != "")
}

// ByHand reports whether the contract's virtual nodes are made from manifests alone:
// as VirtualNodeSpec.ByHand, and where each lies on one node of the provider.
func (s *ContractSpec) ByHand() bool { return len(s.Nodes) > 0 || s.VirtualNode.ByHand() }

// Part is the number of the virtual node of the i-th node that the contract names, from 1.
func (s *ContractSpec) Part(i int) int32 {
	return cmp.Or(s.Nodes[i].Part, int32(i+1)) //nolint:gosec // MaxShares at the most
}

// IsShared reports whether a slice is shared by several virtual nodes.
func (v *VirtualNodeSpec) IsShared() bool { return v.shares() > 0 }

func (v *VirtualNodeSpec) secret() string {
	if v == nil || v.KubeconfigSecretRef == nil {
		return ""
	}
	return v.KubeconfigSecretRef.Name
}

// SameNodes reports whether two specifications ask for as many virtual nodes,
// made the same way: one that runs can become the other.
func (v *VirtualNodeSpec) SameNodes(w *VirtualNodeSpec) bool {
	return v.secret() == w.secret() && v.shares() == w.shares()
}

func (v *VirtualNodeSpec) shares() int {
	if v == nil {
		return 0
	}
	return len(v.Shares)
}

// NodeShare is one virtual node of a contract.
type NodeShare struct {
	// Name of the VirtualNode and its Node.
	Name string
	// Resources that it has, in the names that the slice carries.
	Resources Resources
	// Node of the provider on which it lies, as ContractNode.Node; "" where the contract
	// names none.
	Node string
}

// VirtualNodes are the contract's, in order: one that is named like the slice
// and has all of it; one for each of several nodes that the contract names, or one a
// share (of the contract, or of its one node), named <slice>.1, <slice>.2 and so on, by
// their part where they have one: shares of a part are <slice>.<part>.1 and so on. (No
// other name has a dot in it.) What no share names is divided evenly, rounded
// down. The resources are not to be changed.
func (c *Contract) VirtualNodes() []NodeShare {
	slice := cmp.Or(c.Spec.Slice, c.Metadata.Name)
	n, on := c.Spec.VirtualNode.shares(), ""
	switch nodes := c.Spec.Nodes; {
	case len(nodes) > 1:
		out := make([]NodeShare, len(nodes))
		for i, node := range nodes {
			out[i] = NodeShare{Name: slice + "." + strconv.Itoa(int(c.Spec.Part(i))), Resources: node.Resources, Node: node.Node}
		}
		return out
	case len(nodes) == 1:
		if on = nodes[0].Node; nodes[0].Part > 0 {
			slice += "." + strconv.Itoa(int(nodes[0].Part))
		}
	}
	if n == 0 {
		return []NodeShare{{Name: slice, Resources: c.Spec.Resources, Node: on}}
	}
	out := make([]NodeShare, n)
	named := map[string]bool{}
	for i, share := range c.Spec.VirtualNode.Shares {
		out[i] = NodeShare{Name: slice + "." + strconv.Itoa(i+1), Resources: Resources{}, Node: on}
		for name, amount := range share {
			name = c.sliceName(name)
			named[name] = true
			out[i].Resources[name] = amount
		}
	}
	for name, amount := range c.Spec.Resources {
		for i := range out {
			if !named[name] {
				out[i].Resources[name] = Amount{amount.n / int64(n)}
			} else if _, ok := out[i].Resources[name]; !ok {
				out[i].Resources[name] = Amount{}
			}
		}
	}
	return out
}

// sliceName is a resource's name on the contract's slice.
func (c *Contract) sliceName(name string) string {
	if name == GPU && c.Spec.GPUs != nil {
		return c.Spec.GPUs.ResourceName
	}
	return name
}

// Usable is what the contract's virtual nodes have together: all of it, unless
// shares leave something over. It is not to be changed.
func (c *Contract) Usable() Resources {
	if c.Spec.VirtualNode.shares() == 0 || len(c.Spec.Nodes) > 1 {
		return c.Spec.Resources
	}
	out := Resources{}
	for _, node := range c.VirtualNodes() {
		for name, amount := range node.Resources {
			out[name] = out[name].Add(amount)
		}
	}
	return out
}

// SharesExceed says of which resource the contract's shares are more than its
// slice, "" when they fit.
func (c *Contract) SharesExceed() string {
	sum := c.Usable()
	for _, name := range sum.Names() {
		if has := c.Spec.Resources[name]; has.Less(sum[name]) {
			return fmt.Sprintf("virtualNode.shares ask for %s %s together and the slice has %s", sum[name].Canonical(name), name, has.Canonical(name))
		}
	}
	return ""
}

// Shared is what shares name, each once, in order.
func (v *VirtualNodeSpec) Shared() []string {
	var out []string
	for _, share := range v.Shares {
		out = append(out, share.Names()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
