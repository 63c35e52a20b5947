package nodes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// packing is one search: nodes of which something is taken are apart from their levels.
type packing struct {
	m      *Map
	prefer func(string) bool
	// only are the nodes that may be taken; nil for any.
	only func(string) bool
	// cards is how many pieces of so many units a node's cards hold; nil for any.
	cards func(node string, units int64) int64
	// unit orders the nodes.
	unit int
	// widest: the fewest nodes, whatever is broken.
	widest bool
	taken  []Part
	nodes  []int32 // of taken
}

// pack is Pack without what is loose.
func (m *Map) pack(size quantity.Vector, ask Ask, prefer func(string) bool) []Part {
	p := divide(size, ask, m.Most(ask.Unit))
	for _, widest := range [...]bool{false, true} {
		x := &packing{m: m, prefer: prefer, only: ask.Only, cards: ask.Cards, unit: ask.Unit, widest: widest}
		if !x.put(p.pod, p.n) || p.rest != nil && !x.put(p.rest, 1) || !x.beside(p.over) {
			if widest {
				return nil
			}
			continue
		}
		if len(x.taken) > MaxParts {
			continue
		}
		if changed, ok := x.even(size); !ok || changed && !m.Hosts(x.taken, size, ask) {
			continue
		}
		return x.parts(size)
	}
	return nil
}

// put lays n pieces of a size, on each node as many as fit.
func (x *packing) put(piece quantity.Vector, n int64) bool {
	for n > 0 {
		best, fits := x.best(piece, n)
		if fits == 0 {
			return false
		}
		k := min(fits, n)
		x.take(best, scaled(piece, k))
		n -= k
	}
	return true
}

// rank is how well a node takes pieces: the lowest first.
type rank struct {
	unwanted, short, whole bool
	free, cpu, memory      int64
	node                   int32
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (a *rank) compare(b *rank) int {
	return cmp.Or(cmp.Compare(flag(a.unwanted), flag(b.unwanted)), cmp.Compare(flag(a.whole), flag(b.whole)), cmp.Compare(flag(a.short), flag(b.short)),
		cmp.Compare(a.free, b.free), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory), cmp.Compare(a.node, b.node))
}

// best is the node that takes pieces best, and how many it takes: of nodes of which
// something is taken, then of whole ones, that which holds all with least left, else that
// which holds most.
func (x *packing) best(piece quantity.Vector, n int64) (node int32, fits int64) {
	var best rank
	look := func(i int32, shape, free quantity.Vector) {
		k := times(piece, free)
		if k == 0 || x.only != nil && !x.only(x.m.names[i]) {
			return
		}
		if x.cards != nil {
			if k = min(k, x.cards(x.m.names[i], piece.At(x.unit))); k == 0 {
				return
			}
		}
		r := rank{node: i, free: free.At(x.unit), cpu: free.At(quantity.CPU), memory: free.At(quantity.Memory), short: k < n}
		r.whole = !x.widest && free.At(x.unit) >= shape.At(x.unit)
		r.unwanted = x.prefer != nil && !x.prefer(x.m.names[i])
		if r.short {
			r.free = -k
		}
		if fits == 0 || r.compare(&best) < 0 {
			best, node, fits = r, i, k
		}
	}
	for i := range x.m.levels {
		l := x.m.levels[i]
		for _, at := range l.nodes {
			if slices.Contains(x.nodes, at) {
				continue
			}
			look(at, l.shape, l.free)
			if x.prefer == nil && x.only == nil && x.cards == nil {
				break // the others are like it
			}
		}
	}
	for k, at := range x.nodes {
		if x.cards != nil {
			break // what was taken is not taken off their cards
		}
		look(at, x.m.shape[at], x.left(k))
	}
	return node, fits
}

// left is what is free of the k-th node of which something is taken.
func (x *packing) left(k int) quantity.Vector {
	return x.freeOf(x.nodes[k]).Clone().Sub(x.taken[k].Size)
}

func (x *packing) freeOf(node int32) quantity.Vector {
	for i := range x.m.levels {
		if _, is := slices.BinarySearch(x.m.levels[i].nodes, node); is {
			return x.m.levels[i].free
		}
	}
	return nil
}

func (x *packing) take(node int32, size quantity.Vector) {
	if k := slices.Index(x.nodes, node); k >= 0 {
		x.taken[k].Size = x.taken[k].Size.Add(size)
		return
	}
	x.nodes, x.taken = append(x.nodes, node), append(x.taken, Part{x.m.names[node], size.Clone()})
}

// beside lays what lies next to the pods on their nodes.
func (x *packing) beside(over quantity.Vector) bool {
	over = over.Clone()
	for k := range x.taken {
		left := x.left(k)
		for r, n := range over {
			if n = min(n, left.At(r)); n > 0 && r != quantity.Pods {
				x.taken[k].Size, over[r] = x.taken[k].Size.Set(r, x.taken[k].Size.At(r)+n), over[r]-n
			}
		}
	}
	for r, n := range over {
		if n > 0 && r != quantity.Pods {
			return false
		}
	}
	return true
}

// parts are what was taken, by node, with the quota of pods shared out by units.
func (x *packing) parts(size quantity.Vector) []Part {
	out := x.taken
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Node, b.Node) })
	pods, all := size.At(quantity.Pods), size.At(x.unit)
	left := pods
	for i := range out {
		n := pods / int64(len(out))
		if all > 0 {
			n = quantity.Wide{}.AddProduct(pods, out[i].Size.At(x.unit), 1).Quo(uint64(all))
		}
		out[i].Size = out[i].Size.Set(quantity.Pods, n)
		left -= n
	}
	for i := 0; left > 0; i = (i + 1) % len(out) {
		out[i].Size[quantity.Pods]++
		left--
	}
	return out
}

// even gives each part some of the cores and the memory of a size, because a Node without
// either is never ready: as little as can be, from the part with the most. changed reports
// whether it gave any, ok whether no part is without.
func (x *packing) even(size quantity.Vector) (changed, ok bool) {
	for _, r := range [...]int{quantity.CPU, quantity.Memory} {
		for k := range x.taken {
			if size.At(r) == 0 || x.taken[k].Size.At(r) > 0 {
				continue
			}
			most := 0
			for i := range x.taken {
				if x.taken[i].Size.At(r) > x.taken[most].Size.At(r) {
					most = i
				}
			}
			if x.taken[most].Size.At(r) < 2 || x.left(k).At(r) < 1 {
				return changed, false
			}
			x.taken[most].Size[r]--
			x.taken[k].Size, changed = x.taken[k].Size.Set(r, 1), true
		}
	}
	return changed, true
}
