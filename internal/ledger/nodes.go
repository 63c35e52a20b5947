package ledger

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// MaxNodes is on how many nodes a contract lies at the most: each is a virtual node.
const MaxNodes = 32

// Node is one node of a flavor, in the flavor's own names of resources.
type Node struct {
	// Name is its hash, of a file's flavor its number.
	Name string
	// Shape is what pods can have of it when nothing runs there, Sellable what the
	// provider's own pods leave of that, both × overcommit: what contracts hold is not
	// taken off. Both are shared by equal nodes and must not be modified.
	Shape, Sellable v1alpha1.Resources
	// Labels of topology in which the flavor's nodes differ.
	Labels map[string]string
}

// TellsNodes reports whether a flavor tells how it lies on nodes; on none (nodes: {}) while
// none bears its label yet, and then it sells nothing that lies on a node.
func TellsNodes(f *v1alpha1.Flavor) bool { return f.Spec.Nodes != nil }

// NodesOf are the nodes of a flavor by name, each once; none where it tells none.
func NodesOf(f *v1alpha1.Flavor) []Node {
	if !TellsNodes(f) {
		return nil
	}
	var out []Node
	n := f.Spec.Nodes
	if len(n.Groups) == 0 {
		size := sold(f, n.Size)
		for i := range n.Count {
			out = append(out, Node{Name: strconv.FormatInt(i, 10), Shape: size, Sellable: size})
		}
	}
	for i := range n.Groups {
		g := &n.Groups[i]
		shape := sold(f, g.Shape)
		left := shape
		if g.Free != nil {
			left = v1alpha1.Resources{}
			free := offered(f, g.Free)
			for name, all := range offered(f, g.Shape) {
				left[name] = shape[name].Sub(all.Sub(free[name]))
			}
		}
		for _, name := range g.Nodes {
			out = append(out, Node{Name: name, Shape: shape, Sellable: left, Labels: g.Labels})
		}
	}
	slices.SortStableFunc(out, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b Node) bool { return a.Name == b.Name })
}

// sold is what is sold of what a node has.
func sold(f *v1alpha1.Flavor, r v1alpha1.Resources) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(r))
	for name, a := range offered(f, r) {
		out[name] = scale(a, f.Spec.Overcommit, name)
	}
	return out
}

// offered is resources in a flavor's own names, where they may be written as pods ask for
// them.
func offered(f *v1alpha1.Flavor, r v1alpha1.Resources) v1alpha1.Resources {
	return rename(r, GPUResource(f), v1alpha1.GPU)
}

// OnNodes is what a contract has of each node, in its flavor's own names: the larger of
// what it was sold and what the provider reports there. A contract that has ended, or
// none, has what is still reported under its name.
func OnNodes(f *v1alpha1.Flavor, name string, c *v1alpha1.Contract) map[string]v1alpha1.Resources {
	reported, lingers := f.Spec.HeldOn[name]
	if c != nil && !lingers && c.Spec.Slice != "" && c.Spec.Slice != name {
		reported = f.Spec.HeldOn[c.Spec.Slice]
	}
	holds := c != nil && len(c.Spec.Nodes) > 0 && c.Status.Phase.Held()
	if len(reported) == 0 && !holds {
		return nil
	}
	out := make(map[string]v1alpha1.Resources, max(len(reported), 1))
	for node, r := range reported {
		out[node] = offered(f, r)
	}
	if holds {
		for node, r := range NamedOn(c, f) {
			out[node] = r.Max(out[node])
		}
	}
	return out
}

// NamedOn is what a contract names of each node, in its flavor's own names; nil where it
// names none.
func NamedOn(c *v1alpha1.Contract, f *v1alpha1.Flavor) map[string]v1alpha1.Resources {
	if len(c.Spec.Nodes) == 0 {
		return nil
	}
	out := make(map[string]v1alpha1.Resources, len(c.Spec.Nodes))
	for i := range c.Spec.Nodes {
		n := &c.Spec.Nodes[i]
		out[n.Node] = rename(n.Resources, SlicedAs(c, f), v1alpha1.GPU).Max(out[n.Node])
	}
	return out
}

// PerNode are the resources that nodes bound: how many pods a slice may have is a quota,
// which its flavor alone bounds.
func PerNode(name string) bool { return name != v1alpha1.Pods }

// NodesHeld is what contracts and what lingers of others have of each node of a flavor:
// all that is counted once for asking of many contracts.
type NodesHeld struct {
	nodes map[string]Node
	held  map[string]v1alpha1.Resources
}

// NodesHeldOf adds up what a flavor's contracts have of its nodes; of what the other
// flavors of its pool have there, what the pool shares.
func NodesHeldOf(f Member, pool []Member) NodesHeld {
	h := NodesHeld{map[string]Node{}, map[string]v1alpha1.Resources{}}
	for _, n := range NodesOf(f.Flavor) {
		h.nodes[n.Name] = n
	}
	if len(h.nodes) == 0 {
		return h
	}
	h.add(f, false)
	for _, m := range pool {
		if m.Flavor.Ref() != f.Flavor.Ref() && samePool(m.Flavor, f.Flavor) && f.Flavor.Spec.Pool != "" {
			h.add(m, true)
		}
	}
	return h
}

func (h *NodesHeld) add(f Member, shared bool) {
	known := map[string]bool{}
	take := func(on map[string]v1alpha1.Resources) {
		for node, r := range on {
			sum := h.held[node]
			if sum == nil {
				sum = v1alpha1.Resources{}
				h.held[node] = sum
			}
			for name, a := range r {
				if !shared || slices.Contains(pooled, name) {
					sum[name] = sum[name].Add(a)
				}
			}
		}
	}
	for _, c := range f.Held {
		known[c.Metadata.Name], known[c.Spec.Slice] = true, true
		take(OnNodes(f.Flavor, c.Metadata.Name, c))
	}
	for name := range f.Flavor.Spec.HeldOn {
		if !known[name] {
			take(OnNodes(f.Flavor, name, nil))
		}
	}
}

// Oversold is a node of which contracts together have more than it can give and c has
// something, and the resource; ok is false where there is none. A node that the flavor no
// longer tells is nobody else's.
func (h *NodesHeld) Oversold(c *v1alpha1.Contract) (node, resource string, ok bool) {
	for i := range c.Spec.Nodes {
		n, known := h.nodes[c.Spec.Nodes[i].Node]
		if !known {
			continue
		}
		sum := h.held[n.Name]
		for _, name := range sum.Names() {
			if all, listed := n.Sellable[name]; PerNode(name) && (listed || !slices.Contains(unlimitedWhenAbsent, name)) && all.Less(sum[name]) {
				return n.Name, name, true
			}
		}
	}
	return "", "", false
}

// Sellable is what contracts may have of a node in total; false for one that the flavor
// does not tell.
func (h *NodesHeld) Sellable(node string) (v1alpha1.Resources, bool) {
	n, known := h.nodes[node]
	return n.Sellable, known
}
