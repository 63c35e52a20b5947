package nodes

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// Each calls f with each node and what is free of it, what is loose taken off, by name.
func (m *Map) Each(f func(name string, shape, free quantity.Vector)) {
	free := make([]quantity.Vector, len(m.names))
	for _, l := range m.now() {
		for _, i := range l.nodes {
			free[i] = l.free
		}
	}
	for i, name := range m.names {
		f(name, m.shape[i], free[i])
	}
}

// Units are how many units of a resource are free of each node, by number.
func (m *Map) Units(resource int) []int64 {
	out := make([]int64, 0, len(m.names))
	m.Each(func(_ string, _, free quantity.Vector) { out = append(out, max(free.At(resource), 0)) })
	return out
}

// Free is how many units of a resource are free on how many nodes, and how many on that
// with the most.
func (m *Map) Free(resource int) (sum, on, most int64) {
	for _, l := range m.now() {
		if n := l.free.At(resource); n > 0 {
			sum, on, most = sum+n*int64(len(l.nodes)), on+int64(len(l.nodes)), max(most, n)
		}
	}
	return sum, on, most
}

// Narrow lowers what is free of each node to what is free of it in another map of the same
// nodes.
func (m *Map) Narrow(o *Map) {
	free := make([]quantity.Vector, 0, len(o.names))
	o.Each(func(_ string, _, v quantity.Vector) { free = append(free, v) })
	var cut Holding
	m.Each(func(name string, _, v quantity.Vector) {
		i, known := o.index[name]
		if !known {
			return
		}
		var more quantity.Vector
		for r := range max(len(v), len(free[i])) {
			if d := v.At(r) - free[i].At(r); d > 0 {
				more = more.Set(r, d)
			}
		}
		if more != nil {
			cut.Parts = append(cut.Parts, Part{name, more})
		}
	})
	m.Book(&cut, 1)
}
