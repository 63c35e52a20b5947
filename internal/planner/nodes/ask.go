package nodes

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// Ask is how a replica is made of pods.
type Ask struct {
	// Unit is the resource by which a size is divided into pods: GPUs, or another device.
	Unit int
	// Pod is what the biggest pod asks for of the Named resources; of others it has its
	// share of the replica's. Without its units a replica is one pod where it fits a node,
	// and else whole nodes.
	Pod   quantity.Vector
	Named []int
	// Only are the nodes that may be taken; nil for any.
	Only func(node string) bool
	// Cards is how many pieces of so many units the cards of a node hold, where its units lie on
	// cards that are sold in parts and each piece is to lie together; nil for any.
	Cards func(node string, units int64) int64
}

// unknown is how what lies nobody knows where is made of pods: of one.
func unknown(size quantity.Vector) Ask {
	if size.At(quantity.GPU) > 0 {
		return Ask{Unit: quantity.GPU}
	}
	return Ask{Unit: quantity.CPU}
}

// pieces are pods of one size, and what is left of the last, smaller one.
type pieces struct {
	pod quantity.Vector
	n   int64
	// rest is a last, smaller piece; nil for none.
	rest quantity.Vector
	// over is what lies next to them, on any of their nodes.
	over quantity.Vector
}

// divide is a size as pieces; most is how many units the biggest node has.
func divide(size quantity.Vector, ask Ask, most int64) (p pieces) {
	all := size.At(ask.Unit)
	per := min(all, most)
	if n := ask.Pod.At(ask.Unit); n > 0 {
		per = min(all, n)
	}
	if all <= 0 || per <= 0 {
		p.pod, p.n = size, 1
		return p
	}
	p.n = all / per
	rest := all % per
	p.pod = share(size, per, all)
	for _, r := range ask.Named {
		if n := min(ask.Pod.At(r), size.At(r)/p.n); r != ask.Unit {
			p.pod = p.pod.Set(r, n)
		}
	}
	p.over = size.Clone()
	for r, n := range p.pod {
		p.over = p.over.Set(r, p.over.At(r)-n*p.n)
	}
	if rest > 0 {
		p.rest = share(size, rest, all)
		for r := range p.rest {
			p.rest[r] = min(p.rest[r], p.over.At(r))
		}
		p.over = p.over.Sub(p.rest)
	}
	return p
}

// mebi is what memory and storage are divided by: whole MiB read better.
const mebi = 1 << 20

// share is units of all of a size, rounded down.
func share(size quantity.Vector, units, all int64) quantity.Vector {
	out := make(quantity.Vector, len(size))
	for r, n := range size {
		part := quantity.Wide{}.AddProduct(n, units, 1).Quo(uint64(all)) //nolint:gosec // above 0
		if units < all && (r == quantity.Memory || r == quantity.Storage) && part > mebi {
			part -= part % mebi
		}
		out[r] = part
	}
	return out
}

// times is how many pieces of a size there is room for.
func times(piece, free quantity.Vector) int64 {
	n := int64(1) << 40
	for r, want := range piece {
		if want > 0 && r != quantity.Pods {
			n = min(n, max(free.At(r), 0)/want)
		}
	}
	return n
}

// scaled is k of a piece.
func scaled(piece quantity.Vector, k int64) quantity.Vector {
	out := piece.Clone()
	for r := range out {
		out[r] *= k
	}
	return out
}
