package nodes

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// now are the levels next to what is loose: each of that lies where it packs best, as one
// pod or on whole nodes, and else in pieces on the fullest nodes.
func (m *Map) now() levels {
	if len(m.loose) == 0 {
		return m.levels
	}
	if m.shown != nil {
		return m.shown
	}
	fixed := m.Clone()
	fixed.loose = nil
	for _, size := range m.loose {
		parts := fixed.pack(size, unknown(size), nil)
		if parts == nil {
			parts = fixed.scatter(size)
		}
		fixed.Book(&Holding{Parts: parts}, 1)
	}
	m.shown = fixed.levels
	return m.shown
}

// scatter is a size on the fullest nodes that have something of each resource; what no node
// has is nowhere.
func (m *Map) scatter(size quantity.Vector) []Part {
	order := slices.Clone(m.levels)
	slices.SortStableFunc(order, func(a, b *level) int {
		return cmp.Or(cmp.Compare(max(a.free.At(quantity.GPU), 0), max(b.free.At(quantity.GPU), 0)), cmp.Compare(a.free.At(quantity.CPU), b.free.At(quantity.CPU)), cmp.Compare(a.nodes[0], b.nodes[0]))
	})
	left := size.Clone()
	var out []Part
	for _, l := range order {
		for _, i := range l.nodes {
			var part quantity.Vector
			for r, n := range left {
				if n = min(n, l.free.At(r)); n > 0 && r != quantity.Pods {
					part, left[r] = part.Set(r, n), left[r]-n
				}
			}
			if part != nil {
				out = append(out, Part{m.names[i], part})
			}
		}
	}
	return out
}
