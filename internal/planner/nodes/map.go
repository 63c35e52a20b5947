package nodes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// MaxParts is on how many nodes a contract lies at the most.
const MaxParts = 32

// Part is what lies on one node.
type Part struct {
	Node string
	Size quantity.Vector
}

// Holding is what something holds: parts on nodes, by name, and what lies nobody knows
// where.
type Holding struct {
	Parts []Part
	Loose quantity.Vector
}

// IsZero reports whether it is nothing.
func (h *Holding) IsZero() bool { return len(h.Parts) == 0 && h.Loose == nil }

// Only is a holding of the first resources alone, those that a pool shares.
func (h *Holding) Only(resources int) Holding {
	cut := func(v quantity.Vector) quantity.Vector { return v[:min(len(v), resources)] }
	out := Holding{Loose: cut(h.Loose)}
	if out.Loose.Within(nil) {
		out.Loose = nil
	}
	for _, p := range h.Parts {
		out.Parts = append(out.Parts, Part{p.Node, cut(p.Size)})
	}
	return out
}

// Max is what both hold, of each node the larger; their loose parts are the larger too.
func (h Holding) Max(o Holding) Holding {
	out := Holding{Parts: slices.Clone(h.Parts), Loose: h.Loose}
	for _, p := range o.Parts {
		if i := slices.IndexFunc(out.Parts, func(x Part) bool { return x.Node == p.Node }); i >= 0 {
			out.Parts[i].Size = out.Parts[i].Size.Max(p.Size)
		} else {
			out.Parts = append(out.Parts, p)
		}
	}
	if o.Loose != nil {
		out.Loose = out.Loose.Max(o.Loose)
	}
	return out
}

// Sum adds parts to others, sign times, node by node; parts of nothing are left out.
func Sum(to, parts []Part, sign int64) []Part {
	if len(parts) == 0 {
		return to
	}
	to = slices.Clone(to)
	for _, p := range parts {
		i := slices.IndexFunc(to, func(x Part) bool { return x.Node == p.Node })
		if i < 0 {
			i, to = len(to), append(to, Part{Node: p.Node})
		}
		to[i].Size = to[i].Size.Clone()
		for r, n := range p.Size {
			to[i].Size = to[i].Size.Set(r, to[i].Size.At(r)+sign*n)
		}
	}
	return slices.DeleteFunc(to, func(p Part) bool { return p.Size.Within(nil) && p.Size.Negative().Within(nil) })
}

// Map is what is free of each node of an offer.
type Map struct {
	names  []string
	index  map[string]int32
	shape  []quantity.Vector
	free   []quantity.Vector // without what is loose
	levels levels            // nodes of equal shape and free
	// loose is what is held nobody knows where, the largest first; shown is levels next
	// to it, nil until asked.
	loose []quantity.Vector
	shown levels
}

// Node is one node as it is handed in.
type Node struct {
	Name        string
	Shape, Free quantity.Vector
}

// New is the map of nodes, of which nothing is held; each name once.
func New(list []Node) *Map {
	m := &Map{index: make(map[string]int32, len(list))}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range list {
		n := &list[i]
		m.index[n.Name] = int32(i) //nolint:gosec // their number
		m.names, m.shape, m.free = append(m.names, n.Name), append(m.shape, n.Shape), append(m.free, n.Free)
	}
	m.levels = levelsOf(m.shape, m.free)
	return m
}

// Clone is a map of its own with the same in it.
func (m *Map) Clone() *Map {
	out := *m
	out.free, out.loose, out.shown = slices.Clone(m.free), slices.Clone(m.loose), nil
	out.levels = m.levels.clone()
	return &out
}

// Book takes what is held of its nodes (1), or gives it back (-1). A node that the map does
// not have is nobody else's. nil is no map.
func (m *Map) Book(h *Holding, sign int64) {
	if m == nil || h.IsZero() {
		return
	}
	m.shown = nil
	for _, p := range h.Parts {
		i, known := m.index[p.Node]
		if !known {
			continue
		}
		free := m.free[i].Clone()
		m.levels = m.levels.leave(m.shape[i], m.free[i], i)
		m.free[i] = p.take(free, sign)
		m.levels = m.levels.enter(m.shape[i], m.free[i], i)
	}
	m.bookLoose(h.Loose, sign)
}

// take takes a part of what is free of its node, sign times, in place.
func (p *Part) take(free quantity.Vector, sign int64) quantity.Vector {
	for r, n := range p.Size {
		if r != quantity.Pods && n != 0 {
			free = free.Set(r, free.At(r)-sign*n)
		}
	}
	return free
}

// bookLoose is Book of what lies nobody knows where.
func (m *Map) bookLoose(loose quantity.Vector, sign int64) {
	if loose == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(m.loose, loose, compareLoose)
	switch {
	case sign > 0:
		m.loose = slices.Insert(m.loose, at, loose)
	case at < len(m.loose) && m.loose[at].Equal(loose):
		m.loose = slices.Delete(m.loose, at, at+1)
	}
}

// Booking is what is taken of a map (1), or given back (-1).
type Booking struct {
	Holding *Holding
	Sign    int64
}

// BookAll is Book of one after the other. It finds anew which nodes are alike where that is
// less work than to move each part's: an offer may have hundreds of bookings.
func (m *Map) BookAll(list []Booking) {
	if len(list) < 8 || len(list) < len(m.names)/16 {
		for _, b := range list {
			m.Book(b.Holding, b.Sign)
		}
		return
	}
	m.shown = nil
	own := make([]bool, len(m.free))
	for _, b := range list {
		for k := range b.Holding.Parts {
			p := &b.Holding.Parts[k]
			i, known := m.index[p.Node]
			if !known {
				continue
			}
			if !own[i] {
				m.free[i], own[i] = m.free[i].Clone(), true
			}
			m.free[i] = p.take(m.free[i], b.Sign)
		}
		m.bookLoose(b.Holding.Loose, b.Sign)
	}
	m.levels = levelsOf(m.shape, m.free)
}

// Without calls f as if something held were given back. nil is no map.
func (m *Map) Without(h *Holding, f func()) {
	m.Book(h, -1)
	defer m.Book(h, 1)
	f()
}

// Have is what is free of parts, resource by resource: of a node that has less, that. nil is
// no map, and has nothing.
func (m *Map) Have(parts []Part) []Part {
	if m == nil {
		return nil
	}
	var out []Part
	for _, p := range parts {
		i, known := m.index[p.Node]
		if !known {
			continue
		}
		v := p.Size.Clone()
		for r := range v {
			v[r] = max(min(v[r], m.free[i].At(r)), 0)
		}
		out = append(out, Part{p.Node, v})
	}
	return out
}

// Has reports whether there is a node of a name.
func (m *Map) Has(node string) bool { _, known := m.index[node]; return known }

// Number is the number of a node, by name, -1 for none.
func (m *Map) Number(node string) int32 {
	if i, known := m.index[node]; known {
		return i
	}
	return -1
}

// Len is how many nodes there are.
func (m *Map) Len() int { return len(m.names) }

// Most is how many units of a resource the biggest node has.
func (m *Map) Most(resource int) (most int64) {
	for i := range m.levels {
		most = max(most, m.levels[i].shape.At(resource))
	}
	return most
}

// Empty is the map with nothing held: each node as its shape is.
func (m *Map) Empty() *Map {
	list := make([]Node, len(m.names))
	for i, name := range m.names {
		list[i] = Node{name, m.shape[i], m.shape[i]}
	}
	return New(list)
}

// compareLoose puts the larger first: by GPUs, then cores, then the rest.
func compareLoose(a, b quantity.Vector) int {
	if c := cmp.Or(cmp.Compare(b.At(quantity.GPU), a.At(quantity.GPU)), cmp.Compare(b.At(quantity.CPU), a.At(quantity.CPU)), cmp.Compare(b.At(quantity.Memory), a.At(quantity.Memory))); c != 0 {
		return c
	}
	return compareVectors(b, a)
}
