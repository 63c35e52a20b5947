package inventory

import (
	"maps"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A flavor that tells its nodes is sold by the node: what is free of one is what the
// provider's own pods leave of it, without what contracts have there, by the ledger
// (spec.nodes) and by the provider's report (heldOn), of each the larger. What a contract
// has that neither says on which node is taken to lie where it packs best: older
// contracts, and those without accelerators, which stay with the pool. Flavors of a pool
// are cut from the same nodes: they share what the pool shares, node by node.

// Shared is how many resources the flavors of a pool share: the first ones.
const Shared = quantity.Storage + 1

// Nodes are those of an offer that tells them; else nil.
func (o *Offer) Nodes() *nodes.Map { return o.nodes }

// lacksNode reports whether contracts have more of a node than there is, or something on
// one that the offer no longer tells.
func (o *Offer) lacksNode() bool {
	if o.nodes == nil {
		return false
	}
	return o.nodes.Lacks() || slices.ContainsFunc(o.Contracts, func(c *v1alpha1.Contract) bool {
		return slices.ContainsFunc(c.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return !o.nodes.Has(n.Node) })
	})
}

// dealNodes makes the map of an offer whose contracts are known; nil for one that tells no
// nodes.
func (in *Inventory) dealNodes(o *Offer) *nodes.Map {
	if !o.tellsNodes {
		return nil
	}
	list := ledger.NodesOf(o.Flavor)
	made := make([]nodes.Node, len(list))
	for i := range list {
		n := &list[i]
		if made[i].Name = n.Name; i > 0 && sameMap(n.Shape, list[i-1].Shape) && sameMap(n.Sellable, list[i-1].Sellable) {
			made[i].Shape, made[i].Free = made[i-1].Shape, made[i-1].Free
			continue
		}
		made[i].Shape, made[i].Free = in.nodeVector(n.Shape), in.nodeVector(n.Sellable)
	}
	m := nodes.New(made)
	in.holdOn(m, o, math.MaxInt)
	for _, peer := range o.PoolPeers {
		in.holdOn(m, peer, Shared)
	}
	return m
}

// sameMap reports whether two are the very same.
func sameMap(a, b v1alpha1.Resources) bool { return maps.Equal(a, b) }

// nodeVector is what a node has; storage that it does not list is not limited.
func (in *Inventory) nodeVector(r v1alpha1.Resources) quantity.Vector {
	v := in.facts.Names.VectorOf(r)
	if _, listed := r[v1alpha1.EphemeralStorage]; !listed {
		v = v.Set(quantity.Storage, ledger.Unlimited.Int64())
	}
	return v
}

// holdOn takes off a map what is held of an offer, as far as its resources are shared.
func (in *Inventory) holdOn(m *nodes.Map, o *Offer, resources int) {
	in.eachHolding(o, func(_ *v1alpha1.Contract, h nodes.Holding) {
		h = h.Only(resources)
		m.Book(&h, 1)
	})
}

// eachHolding calls f with what each contract has of an offer's nodes, and, in any order,
// with what its provider reports of others (nil).
func (in *Inventory) eachHolding(o *Offer, f func(c *v1alpha1.Contract, h nodes.Holding)) {
	known := map[string]bool{}
	for _, c := range o.Contracts {
		known[c.Metadata.Name], known[c.Spec.Slice] = true, true
		f(c, in.holding(o, c.Metadata.Name, c, in.Footprint(o, c.Metadata.Name, c)))
	}
	for _, reported := range [...]map[string]bool{keys(o.Flavor.Spec.Held), keys(o.Flavor.Spec.HeldOn)} {
		for name := range reported {
			if !known[name] {
				known[name] = true
				f(nil, in.holding(o, name, nil, in.Footprint(o, name, nil)))
			}
		}
	}
}

func keys[V any](m map[string]V) map[string]bool {
	out := make(map[string]bool, len(m))
	for name := range m {
		out[name] = true
	}
	return out
}

// Holding is what a contract that takes so much of an offer has of its nodes, and what of
// it lies nobody knows where. It is nothing where nobody asks: neither the offer nor one of
// its pool tells nodes.
func (in *Inventory) Holding(o *Offer, name string, c *v1alpha1.Contract, takes quantity.Vector) (h nodes.Holding) {
	if !o.AsksNodes() {
		return h
	}
	return in.holding(o, name, c, takes)
}

func (in *Inventory) holding(o *Offer, name string, c *v1alpha1.Contract, takes quantity.Vector) (h nodes.Holding) {
	return in.split(ledger.OnNodes(o.Flavor, name, c), takes)
}

// HoldingOfBoth is Holding of a contract that still has what it had of nodes before: of each
// the larger.
func (in *Inventory) HoldingOfBoth(o *Offer, name string, c, before *v1alpha1.Contract, takes quantity.Vector) nodes.Holding {
	on := maps.Clone(ledger.OnNodes(o.Flavor, name, c))
	for node, r := range ledger.OnNodes(o.Flavor, name, before) {
		if on == nil {
			on = map[string]v1alpha1.Resources{}
		}
		on[node] = r.Max(on[node])
	}
	return in.split(on, takes)
}

// split is what lies on nodes, and what is left of all that is taken.
func (in *Inventory) split(on map[string]v1alpha1.Resources, takes quantity.Vector) (h nodes.Holding) {
	loose := takes.Clone()
	for _, node := range slices.Sorted(maps.Keys(on)) {
		v := in.facts.Names.VectorOf(on[node])
		h.Parts = append(h.Parts, nodes.Part{Node: node, Size: v})
		loose = loose.Sub(v)
	}
	if len(loose) > quantity.Pods {
		loose[quantity.Pods] = 0
	}
	if loose = loose.Max(nil); !loose.Within(nil) {
		h.Loose = loose
	}
	return h
}

// AsksNodes reports whether it matters on which nodes contracts of an offer lie.
func (o *Offer) AsksNodes() bool {
	return o.tellsNodes || slices.ContainsFunc(o.PoolPeers, func(m *Offer) bool { return m.tellsNodes })
}
