package ancestry

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// maxNear is how many commits are looked at for one through which every way back
// leads, before the depths of all are asked for.
const maxNear = 10_000

// near are the commits from two back to one through which every way from both
// leads: what lies beyond it is an ancestor of both, and no commit before it is
// its ancestor, because a way leads from there to it. That one stands for all
// beyond it. Nil: there is none near enough.
func (g *Graph) near(ctx context.Context, a, b tree.Hash) (map[tree.Hash]*place, error) {
	seen := map[tree.Hash]*place{}
	queue := []tree.Hash{a, b}
	waiting := map[tree.Hash]bool{a: true, b: true}
	check, rooted := 1, false
	for len(queue) > 0 {
		if len(queue) == 1 && len(seen) >= check && !rooted {
			z := queue[0]
			seen[z] = &place{}
			if leads(seen, a, z) && leads(seen, b, z) {
				break
			}
			delete(seen, z)
			check = 2 * len(seen)
		}
		if len(seen) >= maxNear {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h := queue[0]
		queue = queue[1:]
		delete(waiting, h)
		parents, err := g.parents(h)
		if err != nil {
			return nil, err
		}
		seen[h] = &place{parents: parents}
		rooted = rooted || len(parents) == 0
		for _, p := range parents {
			if seen[p] == nil && !waiting[p] {
				waiting[p] = true
				queue = append(queue, p)
			}
		}
	}
	measure(seen, a)
	measure(seen, b)
	return seen, nil
}

// leads reports whether a way goes from one commit to another, among those seen.
func leads(seen map[tree.Hash]*place, from, to tree.Hash) bool {
	done := map[tree.Hash]bool{from: true}
	for stack := []tree.Hash{from}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at == to {
			return true
		}
		for _, p := range seen[at].parents {
			if !done[p] {
				done[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// measure sets the depths of a commit and its ancestors, among those seen.
func measure(seen map[tree.Hash]*place, from tree.Hash) {
	type open struct {
		*place
		next int
	}
	for stack := []open{{place: seen[from]}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.parents) {
			depth := int32(1)
			for _, p := range top.parents {
				depth = max(depth, seen[p].depth+1)
			}
			top.depth = depth
			stack = stack[:len(stack)-1]
			continue
		}
		p := seen[top.parents[top.next]]
		top.next++
		if p.depth == 0 {
			stack = append(stack, open{place: p})
		}
	}
}
