package ancestry_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
)

// history is commits by number, each with the numbers of its parents.
type history [][]int

func name(i int) tree.Hash { return tree.BlobHash(fmt.Append(nil, i)) }

func (h history) graph(looked *int) *ancestry.Graph {
	parents := map[tree.Hash][]tree.Hash{}
	for i, ps := range h {
		for _, p := range ps {
			parents[name(i)] = append(parents[name(i)], name(p))
		}
	}
	return ancestry.New(func(c tree.Hash) ([]tree.Hash, error) {
		*looked++
		return parents[c], nil
	})
}

// reached are all commits that one reaches, worked out the slow way.
func (h history) reached(i int) map[tree.Hash]bool {
	out := map[tree.Hash]bool{name(i): true}
	for _, p := range h[i] {
		for c := range h.reached(p) {
			out[c] = true
		}
	}
	return out
}

func drawn(rt *rapid.T) history {
	var h history
	for i := range rapid.IntRange(1, 14).Draw(rt, "commits") {
		var parents []int
		if i > 0 {
			for range rapid.IntRange(0, 3).Draw(rt, "parents") {
				if p := rapid.IntRange(max(0, i-5), i-1).Draw(rt, "parent"); !slices.Contains(parents, p) {
					parents = append(parents, p)
				}
			}
		}
		h = append(h, parents)
	}
	return h
}

// Whatever the shape, and whichever way was taken, the answers are those of
// walking everything.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawn(rt)
		n := 0
		g := h.graph(&n)
		for range 4 {
			i, j := rapid.IntRange(0, len(h)-1).Draw(rt, "a"), rapid.IntRange(0, len(h)-1).Draw(rt, "b")
			a, b := h.reached(i), h.reached(j)
			if held, err := g.Holds(t.Context(), name(i), name(j)); err != nil || held != a[name(j)] {
				rt.Fatalf("%v: %d holds %d: %v, %v", h, i, j, held, err)
			}
			only, err := g.Only(t.Context(), name(i), name(j))
			if err != nil {
				rt.Fatal(err)
			}
			want := 0
			for c := range a {
				if !b[c] {
					want++
				}
			}
			if len(only) != want || slices.ContainsFunc(only, func(c tree.Hash) bool { return !a[c] || b[c] }) {
				rt.Fatalf("%v: only %d, not %d: %d commits, want %d", h, i, j, len(only), want)
			}
			for k, c := range only {
				of := 0
				for name(of) != c {
					of++
				}
				for _, earlier := range only[:k] {
					if h.reached(of)[earlier] {
						rt.Fatalf("%v: only %d, not %d: an ancestor stands before what descends from it", h, i, j)
					}
				}
			}
			bases, err := g.Bases(t.Context(), name(i), name(j))
			if err != nil {
				rt.Fatal(err)
			}
			best := map[tree.Hash]bool{}
			for x := range h {
				c := name(x)
				if !a[c] || !b[c] {
					continue
				}
				best[c] = true
				for y := range h {
					if y != x && a[name(y)] && b[name(y)] && h.reached(y)[c] {
						delete(best, c)
					}
				}
			}
			if len(bases) != len(best) || slices.ContainsFunc(bases, func(c tree.Hash) bool { return !best[c] }) {
				rt.Fatalf("%v: bases of %d and %d: %d, want %d", h, i, j, len(bases), len(best))
			}
		}
	})
}

// What came since a commit costs what came, not the history, a branch that was
// cut before it included; what forked long before costs the history once.
func TestCost(t *testing.T) {
	const long = 20_000
	h := make(history, long)
	for i := 1; i < long; i++ {
		h[i] = []int{i - 1}
	}
	h = append(h, []int{long - 50}, []int{long - 1, long}, []int{5_000}, []int{long + 1, long + 2}) // branches, and their merges
	n := 0
	g := h.graph(&n)
	for _, c := range []struct{ head, since, commits, looked, kept int }{
		{long - 1, long - 100, 99, 200, 0},
		{long + 1, long - 1, 2, 110, 0},
		{long + 3, long + 1, 2, 3 * long, len(h)},
		{long + 3, long + 1, 2, long - 5_000 + 10, len(h)},
		{long + 1, long - 100, 101, 110, len(h)},
	} {
		n = 0
		only, err := g.Only(t.Context(), name(c.head), name(c.since))
		if err != nil || len(only) != c.commits || n > c.looked || g.Known() != c.kept {
			t.Errorf("%+v: %d commits, %d looked at, %d kept, %v", c, len(only), n, g.Known(), err)
		}
	}
	n = 0
	if held, err := g.Holds(t.Context(), name(10), name(long)); err != nil || held || n > 0 {
		t.Errorf("an older commit holds a newer: %v, %d looked at, %v", held, n, err)
	}
}
