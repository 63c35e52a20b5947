package links

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// intents are n that name others as to gives them.
func intents(n int, to func(i int) []int) []*model.Intent {
	var out []*model.Intent
	for i := range n {
		r := &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: name(i)}}
		for _, j := range to(i) {
			r.Spec.Placement.Together = append(r.Spec.Placement.Together, name(j))
		}
		out = append(out, &model.Intent{ResourceIntent: r})
	}
	return out
}

func name(i int) string { return fmt.Sprintf("k%06d", i) }

func TestGraph_AgreesWithWalkingEachPair(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n, ahead := 2+r.IntN(7), map[[2]int]bool{}
		all := intents(n, func(i int) (out []int) {
			for j := range n + 1 { // the last has no file
				if j != i && r.IntN(5) == 0 {
					out = append(out, j)
					ahead[[2]int{i, j}] = true
				}
			}
			return out
		})
		reach, both := closure(n+1, ahead, false), closure(n+1, ahead, true)
		g := New(all)
		for i := range n {
			for j := range n {
				if i == j {
					continue
				}
				if got, want := g.Belong(name(i), name(j)), both[[2]int{i, j}]; got != want {
					t.Fatalf("%v: %d and %d belong together: got %t, want %t", ahead, i, j, got, want)
				}
				if !ahead[[2]int{i, j}] {
					continue
				}
				got := g.Circle(name(i), name(j))
				if want := reach[[2]int{j, i}]; (got != "") != want {
					t.Fatalf("%v: %d names %d: circle %q, want one: %t", ahead, i, j, got, want)
				}
				if way := strings.Split(got, " → "); got != "" && (way[0] != name(i) || way[1] != name(j) || way[len(way)-1] != name(i) || slices.Contains(way, "…") && len(way) < 4) {
					t.Fatalf("%d names %d: %q", i, j, got)
				}
			}
		}
	}
}

func closure(n int, ahead map[[2]int]bool, back bool) map[[2]int]bool {
	out := map[[2]int]bool{}
	for e := range ahead {
		out[e] = true
		if back {
			out[[2]int{e[1], e[0]}] = true
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				if out[[2]int{i, k}] && out[[2]int{k, j}] {
					out[[2]int{i, j}] = true
				}
			}
		}
	}
	return out
}

// All pairs, a ring of thousands, and unknown names without end: as long as their lists.
func TestGraph_OfWhoNamesEverybody(t *testing.T) {
	for what, all := range map[string][]*model.Intent{
		"all pairs": intents(257, func(i int) (out []int) {
			for j := range 256 {
				out = append(out, (i+j+1)%257)
			}
			return out
		}),
		"a ring": intents(5_000, func(i int) []int { return []int{(i + 1) % 5_000} }),
	} {
		g := New(all)
		for _, in := range all {
			for _, other := range in.Spec.Placement.Together {
				if text := g.Circle(in.Metadata.Name, other); text == "" || len(text) > 200 {
					t.Fatalf("%s: the circle of %s by %s is %.100q", what, in.Metadata.Name, other, text)
				}
				if !g.Belong(in.Metadata.Name, other) {
					t.Fatalf("%s: %s and %s do not belong together", what, in.Metadata.Name, other)
				}
			}
			g.Known()
		}
		if g.steps < -256 {
			t.Errorf("%s: %d names were followed, want at most %d", what, maxSteps-g.steps, maxSteps)
		}
		if len(all) > 1000 && g.Known() != nil {
			t.Errorf("%s: unknown names are compared without end", what)
		}
	}
	if small := New(intents(3, func(int) []int { return nil })); len(small.Known()) != 3 {
		t.Error("a few names are not compared")
	}
}

// TestGraph_Size: a group is as many intents as there are in it, whoever names whom; names of
// nobody are none.
func TestGraph_Size(t *testing.T) {
	g := New(intents(6, func(i int) []int {
		return map[int][]int{0: {1}, 1: {2}, 2: {9}, 4: {5}}[i]
	}))
	for i, want := range []int{3, 3, 3, 0, 2, 2} {
		if n := g.Size(name(i)); n != want {
			t.Errorf("%s belongs together with %d, want %d", name(i), n, want)
		}
	}
}
