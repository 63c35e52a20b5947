// Package links is who of a tenant's intents must be on one provider with whom
// (placement.together), over any number of steps.
//
// Whatever a tenant's intents name, a Graph costs what their lists are long, once, and the
// texts for people a bounded amount beyond: who asks for all pairs waits for none.
//
// Package fleet checks intents by a Graph, which belongs to one goroutine.
package links

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// Find is an intent by its name among those sorted by it, nil when there is
// none.
func Find(all []*model.Intent, name string) *model.Intent {
	i, ok := slices.BinarySearchFunc(all, name, func(in *model.Intent, name string) int { return strings.Compare(in.Metadata.Name, name) })
	if !ok {
		return nil
	}
	return all[i]
}

// MaxGroup is how many intents may belong together: all of them are looked for a place as one,
// on one provider after the other.
const MaxGroup = 64

// Bounds of what is looked for to explain, for all intents of a Graph together.
const (
	maxSteps   = 1_000_000 // names followed for circles
	maxCircle  = 8         // names of a circle that are shown
	maxSimilar = 1_000_000 // names compared with one that is unknown
)

// Graph is who names whom among a tenant's intents.
type Graph struct {
	all []*model.Intent
	// group is by name which intents belong together, round which name each other in a
	// circle: equal numbers do.
	group, round map[string]int
	size         map[int]int // of each group, by its number
	// steps and similar are what may still be looked for.
	steps, similar int
	names          []string
}

// New is the graph of intents that are sorted by name.
func New(all []*model.Intent) *Graph {
	g := &Graph{all: all, group: map[string]int{}, round: map[string]int{}, size: map[int]int{}, steps: maxSteps, similar: maxSimilar}
	out, in, both := map[string][]string{}, map[string][]string{}, map[string][]string{}
	var nodes []string
	for _, it := range all {
		name := it.Metadata.Name
		g.names = append(g.names, name)
		for _, other := range it.Spec.Placement.Together {
			out[name], in[other] = append(out[name], other), append(in[other], name)
			both[name], both[other] = append(both[name], other), append(both[other], name)
			nodes = append(nodes, name, other)
		}
	}
	// Circles are found in the order in which the walk ahead leaves names, by walking back.
	var left []string
	seen := map[string]int{}
	for _, name := range nodes {
		walk(out, name, seen, 0, func(name string) { left = append(left, name) })
	}
	for i, name := range slices.Backward(left) {
		walk(in, name, g.round, i, func(string) {})
	}
	for i, name := range nodes {
		walk(both, name, g.group, i, func(name string) {
			if Find(all, name) != nil {
				g.size[i]++
			}
		})
	}
	return g
}

// walk gives all names that can be reached from one and were not seen yet a number, and
// calls leave for each once what follows from it is done.
func walk(next map[string][]string, from string, seen map[string]int, number int, leave func(name string)) {
	type step struct {
		name string
		at   int
	}
	if _, is := seen[from]; is {
		return
	}
	seen[from] = number
	for stack := []step{{name: from}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.at == len(next[top.name]) {
			leave(top.name)
			stack = stack[:len(stack)-1]
			continue
		}
		to := next[top.name][top.at]
		top.at++
		if _, is := seen[to]; !is {
			seen[to] = number
			stack = append(stack, step{name: to})
		}
	}
}

// Belong reports whether two intents must be on one provider, over any number of links.
func (g *Graph) Belong(name, other string) bool {
	a, is := g.group[name]
	b, isToo := g.group[other]
	return is && isToo && a == b
}

// Size is how many of the intents belong together with one, itself included; 0 where it names
// nobody and nobody names it.
func (g *Graph) Size(name string) int {
	i, is := g.group[name]
	if !is {
		return 0
	}
	return g.size[i]
}

// Circle is the shortest way from an intent by another that it names back to it, as a
// text; "" when there is none. Of a long one, or once many were looked for, the middle is
// left out.
func (g *Graph) Circle(name, other string) string {
	if g.round[name] != g.round[other] {
		return ""
	}
	way := g.way(other, name)
	if len(way) == 0 || len(way) > maxCircle {
		way = []string{other, "…", name}
	}
	return strings.Join(append([]string{name}, way...), " → ")
}

// way is the shortest way from one intent to another, both ends included; nil when there is
// none, or it takes too long to find.
func (g *Graph) way(from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0 && g.steps > 0; queue = queue[1:] {
		if queue[0] == to {
			var way []string
			for name := to; name != ""; name = cameFrom[name] {
				way = append(way, name)
			}
			slices.Reverse(way)
			return way
		}
		in := Find(g.all, queue[0])
		if in == nil {
			continue
		}
		for _, next := range in.Spec.Placement.Together {
			g.steps--
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// Known are the intents' names, for one that is like an unknown one; nil once many were
// looked for.
func (g *Graph) Known() []string {
	if g.similar <= 0 {
		return nil
	}
	g.similar -= len(g.names)
	return g.names
}
