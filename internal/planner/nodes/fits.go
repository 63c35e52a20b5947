package nodes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Pack is on which nodes a size lies as pods, by name, nil where it does not fit. Nodes
// that are preferred come first.
func (m *Map) Pack(size quantity.Vector, ask Ask, prefer func(node string) bool) []Part {
	if len(m.loose) == 0 {
		return m.pack(size, ask, prefer)
	}
	trial := *m
	trial.levels = m.now()
	return trial.pack(size, ask, prefer)
}

// Fits reports whether a size fits as pods.
func (m *Map) Fits(size quantity.Vector, ask Ask) bool { return m.Pack(size, ask, nil) != nil }

// FitsShape reports whether it would fit if so many further nodes of the biggest shape
// were there as it takes: what an autoscaler adds is of the shapes that there are.
func (m *Map) FitsShape(size quantity.Vector, ask Ask) bool {
	p := divide(size, ask, m.Most(ask.Unit))
	return ask.Only == nil && slices.ContainsFunc(m.levels, func(l *level) bool { return times(p.pod, l.shape) > 0 })
}

// Times is how often a size fits as pods, n at the most.
func (m *Map) Times(size quantity.Vector, ask Ask, n int) int {
	trial := m.Clone()
	trial.levels, trial.loose = m.now().clone(), nil
	if len(m.loose) > 0 {
		trial.free = slices.Clone(m.free)
		for _, l := range trial.levels {
			for _, i := range l.nodes {
				trial.free[i] = l.free
			}
		}
	}
	for fits := range n {
		parts := trial.pack(size, ask, nil)
		if parts == nil {
			return fits
		}
		trial.Book(&Holding{Parts: parts}, 1)
	}
	return n
}

// Holds reports whether a part is free of its node.
func (m *Map) Holds(p Part) bool {
	i, known := m.index[p.Node]
	if !known {
		return false
	}
	for _, l := range m.now() {
		if _, is := slices.BinarySearch(l.nodes, i); is {
			return times(p.Size, l.free) > 0
		}
	}
	return false
}

// Moved are parts each as it is, on its node where that is free and else on another; nil
// where one finds none.
func (m *Map) Moved(parts []Part) []Part {
	out := m.Remapped(parts, "", nil, nil)
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// Remapped is Moved with the parts in their order; none is left on the node that is shunned,
// and others go to nodes of only alone, whose cards hold them together; nil for any.
func (m *Map) Remapped(parts []Part, shunned string, only func(node string) bool, cards func(node string, units int64) int64) []Part {
	trial, out := m.Clone(), slices.Clone(parts)
	take := func(p Part) { trial.Book(&Holding{Parts: []Part{p}}, 1) }
	var homeless []int
	for i, p := range parts {
		if p.Node != shunned && trial.Holds(p) {
			take(p)
		} else {
			homeless, out[i].Node = append(homeless, i), ""
		}
	}
	for _, i := range homeless {
		free := func(node string) bool {
			return node != shunned && !slices.ContainsFunc(out, func(o Part) bool { return o.Node == node })
		}
		x := &packing{m: trial, unit: unknown(parts[i].Size).Unit, prefer: free, only: only, cards: cards}
		best, fits := x.best(parts[i].Size, 1)
		if fits == 0 || !free(m.names[best]) {
			return nil
		}
		out[i].Node = m.names[best]
		take(out[i])
	}
	return out
}

// Short is the resource of which the nodes that have a pod's units free have too little for
// the pod, and the most that one of them has; -1 where that is not what is missing.
func (m *Map) Short(size quantity.Vector, ask Ask) (resource int, most int64) {
	p := divide(size, ask, m.Most(ask.Unit))
	resource = -1
	list := slices.Clone(m.now())
	slices.SortFunc(list, func(a, b *level) int { return cmp.Compare(a.nodes[0], b.nodes[0]) }) // the first node that lacks something says of what
	for _, l := range list {
		if l.free.At(ask.Unit) < p.pod.At(ask.Unit) {
			continue
		}
		for r, n := range p.pod {
			if r == quantity.Pods || n <= l.free.At(r) {
				continue
			}
			if have := max(l.free.At(r), 0); resource < 0 || r == resource && have > most {
				resource, most = r, have
			}
		}
	}
	return resource, most
}
