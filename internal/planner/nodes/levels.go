package nodes

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// level are nodes that are alike.
type level struct {
	shape, free quantity.Vector
	sum         uint64  // of both, so that those that differ are told apart at a glance
	nodes       []int32 // by number, which is their order by name
}

// levels are those of a map, each once, in the order of compare: where all of 10,000 nodes
// differ, one is found in 14 steps.
type levels []*level

// sumOf is equal for equal vectors, and for hardly any others.
func sumOf(shape, free quantity.Vector) (sum uint64) {
	for i, v := range [...]quantity.Vector{shape, free} {
		for r, n := range v {
			if n != 0 {
				x := (uint64(n) + uint64(2*r+i+1)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 //nolint:gosec // bits
				sum ^= x ^ x>>29
			}
		}
	}
	return sum
}

// compare is 0 for nodes that are alike alone; the order says nothing of them.
func (l *level) compare(o *level) int {
	return cmp.Or(cmp.Compare(l.sum, o.sum), compareVectors(l.free, o.free), compareVectors(l.shape, o.shape))
}

func compareVectors(a, b quantity.Vector) int {
	for r := range max(len(a), len(b)) {
		if c := cmp.Compare(a.At(r), b.At(r)); c != 0 {
			return c
		}
	}
	return 0
}

// levelsOf are the levels of nodes by number.
func levelsOf(shape, free []quantity.Vector) levels {
	each := make([]level, len(free))
	all := make(levels, len(free))
	for i := range each {
		each[i] = level{shape: shape[i], free: free[i], sum: sumOf(shape[i], free[i]), nodes: []int32{int32(i)}} //nolint:gosec // their number
		all[i] = &each[i]
	}
	slices.SortStableFunc(all, (*level).compare)
	out := all[:0]
	for _, l := range all {
		if n := len(out); n > 0 && out[n-1].compare(l) == 0 {
			out[n-1].nodes = append(out[n-1].nodes, l.nodes[0])
		} else {
			out = append(out, l)
		}
	}
	return slices.Clip(out)
}

// clone are levels of their own.
func (l levels) clone() levels {
	count := 0
	for _, x := range l {
		count += len(x.nodes)
	}
	each, nodes, out := make([]level, len(l)), make([]int32, 0, count), make(levels, len(l))
	for i, x := range l {
		from := len(nodes)
		nodes = append(nodes, x.nodes...)
		each[i] = level{x.shape, x.free, x.sum, nodes[from:len(nodes):len(nodes)]}
		out[i] = &each[i]
	}
	return out
}

// enter puts a node among those that are alike.
func (l levels) enter(shape, free quantity.Vector, node int32) levels {
	made := &level{shape: shape, free: free, sum: sumOf(shape, free)}
	at, known := slices.BinarySearchFunc(l, made, (*level).compare)
	if !known {
		l = slices.Insert(l, at, made)
	}
	n, _ := slices.BinarySearch(l[at].nodes, node)
	l[at].nodes = slices.Insert(l[at].nodes, n, node)
	return l
}

// leave takes a node from those that it is alike.
func (l levels) leave(shape, free quantity.Vector, node int32) levels {
	at, known := slices.BinarySearchFunc(l, &level{shape: shape, free: free, sum: sumOf(shape, free)}, (*level).compare)
	if !known {
		return l
	}
	x := l[at]
	if n, is := slices.BinarySearch(x.nodes, node); is {
		if x.nodes = slices.Delete(x.nodes, n, n+1); len(x.nodes) == 0 {
			return slices.Delete(l, at, at+1)
		}
	}
	return l
}
