package ancestry

import (
	"container/heap"
	"context"
	"slices"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Parents reads the parents of a commit.
type Parents func(tree.Hash) ([]tree.Hash, error)

// Graph is a history of commits.
type Graph struct {
	parents Parents
	*depths
}

// depths are what is known of commits, whatever reads them.
type depths struct {
	mu sync.Mutex
	of map[tree.Hash]int32
}

// New returns the graph of a history.
func New(parents Parents) *Graph { return &Graph{parents, &depths{of: map[tree.Hash]int32{}}} }

// With is the graph of a history that has all of this one's commits, and perhaps
// others: what either finds out holds for both.
func (g *Graph) With(parents Parents) *Graph { return &Graph{parents, g.depths} }

// Known is of how many commits the depth is kept.
func (g *Graph) Known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.of)
}

func (g *Graph) known(h tree.Hash) (int32, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d, ok := g.of[h]
	return d, ok
}

// open is a commit whose depth waits for those of its parents.
type open struct {
	hash    tree.Hash
	parents []tree.Hash
	next    int
	depth   int32
}

// Depth is the length of the longest way from a commit to one without parents,
// which is 1 deep itself.
func (g *Graph) Depth(ctx context.Context, h tree.Hash) (int32, error) {
	if d, ok := g.known(h); ok {
		return d, nil
	}
	stack := []open{{hash: h}}
	for {
		top := &stack[len(stack)-1]
		if top.parents == nil {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			var err error
			if top.parents, err = g.parents(top.hash); err != nil {
				return 0, err
			}
			if top.parents == nil {
				top.parents = []tree.Hash{}
			}
		}
		if top.next < len(top.parents) {
			p := top.parents[top.next]
			if d, ok := g.known(p); ok {
				top.depth = max(top.depth, d)
				top.next++
			} else {
				stack = append(stack, open{hash: p})
			}
			continue
		}
		d := top.depth + 1
		g.mu.Lock()
		g.of[top.hash] = d
		g.mu.Unlock()
		if stack = stack[:len(stack)-1]; len(stack) == 0 {
			return d, nil
		}
	}
}

// Holds reports whether a commit is another or one of its ancestors. A yes looks
// at little more than what lies between.
func (g *Graph) Holds(ctx context.Context, of, h tree.Hash) (bool, error) {
	if of.IsZero() || h.IsZero() {
		return false, nil
	}
	least, bounded := g.known(h)
	found := false
	err := Walk(ctx, of, func(at tree.Hash) ([]tree.Hash, bool, error) {
		if found = at == h; found {
			return nil, true, nil
		}
		if d, ok := g.known(at); ok && bounded && d <= least {
			return nil, false, nil
		}
		parents, err := g.parents(at)
		return parents, false, err
	})
	return found, err
}

// Only are the commits that one reaches and another (zero: none) does not, each
// before its ancestors.
func (g *Graph) Only(ctx context.Context, from, without tree.Hash) ([]tree.Hash, error) {
	if from.IsZero() || from == without {
		return nil, nil
	}
	look, err := g.looker(ctx, from, without)
	if err != nil {
		return nil, err
	}
	q := queue{look: look, sides: map[tree.Hash]side{}, wanted: func(s side) bool { return s == left }}
	if err := q.push(ctx, from, left); err != nil {
		return nil, err
	}
	if !without.IsZero() {
		if err := q.push(ctx, without, right); err != nil {
			return nil, err
		}
	}
	var out []tree.Hash
	err = q.run(ctx, func(h tree.Hash, s side) side {
		if s == left {
			out = append(out, h)
		}
		return s
	})
	return out, err
}

// Bases are the best common ancestors of two commits, in the order of their
// names: those that are no ancestors of another.
func (g *Graph) Bases(ctx context.Context, a, b tree.Hash) ([]tree.Hash, error) {
	look, err := g.looker(ctx, a, b)
	if err != nil {
		return nil, err
	}
	q := queue{look: look, sides: map[tree.Hash]side{}, wanted: func(s side) bool { return s&below == 0 }}
	if err := q.push(ctx, a, left); err != nil {
		return nil, err
	}
	if err := q.push(ctx, b, right); err != nil {
		return nil, err
	}
	var out []tree.Hash
	err = q.run(ctx, func(h tree.Hash, s side) side {
		if s == left|right {
			out = append(out, h)
			s |= below
		}
		return s
	})
	slices.SortFunc(out, func(a, b tree.Hash) int { return slices.Compare(a[:], b[:]) })
	return out, err
}

// looker finds a commit's place: near where two commits part, if that is enough,
// else by the depths of all.
func (g *Graph) looker(ctx context.Context, a, b tree.Hash) (looker, error) {
	if _, known := g.known(b); !known && !b.IsZero() {
		near, err := g.near(ctx, a, b)
		if err != nil {
			return nil, err
		}
		if near != nil {
			return func(_ context.Context, h tree.Hash) (place, error) { return *near[h], nil }, nil
		}
	}
	return func(ctx context.Context, h tree.Hash) (place, error) {
		d, err := g.Depth(ctx, h)
		if err != nil {
			return place{}, err
		}
		parents, err := g.parents(h)
		return place{parents, d}, err
	}, nil
}

// side says from where a commit is reached.
type side uint8

const (
	left side = 1 << iota
	right
	// below: by way of a common ancestor.
	below
)

// place is where a commit stands: deeper than all its ancestors.
type place struct {
	parents []tree.Hash
	depth   int32
}

type looker func(context.Context, tree.Hash) (place, error)

// queue are commits to look at, the deepest first: what reaches a commit is known
// when its turn comes.
type queue struct {
	look   looker
	list   []ranked
	sides  map[tree.Hash]side
	wanted func(side) bool
	open   int // those waiting that are wanted
}

type ranked struct {
	hash tree.Hash
	place
}

func (q *queue) push(ctx context.Context, h tree.Hash, s side) error {
	was, known := q.sides[h]
	is := was | s
	if known && is == was {
		return nil
	}
	if known && q.wanted(was) {
		q.open--
	}
	if q.wanted(is) {
		q.open++
	}
	q.sides[h] = is
	if known {
		return nil
	}
	at, err := q.look(ctx, h)
	if err == nil {
		heap.Push(q, ranked{h, at})
	}
	return err
}

// run looks at commits until none that waits is wanted. at says what its parents
// are reached from.
func (q *queue) run(ctx context.Context, at func(tree.Hash, side) side) error {
	for q.open > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := heap.Pop(q).(ranked) //nolint:forcetypeassert // the queue's own
		s := q.sides[c.hash]
		if q.wanted(s) {
			q.open--
		}
		s = at(c.hash, s)
		for _, p := range c.parents {
			if err := q.push(ctx, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *queue) Len() int { return len(q.list) }
func (q *queue) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	if a.depth != b.depth {
		return a.depth > b.depth
	}
	return slices.Compare(a.hash[:], b.hash[:]) < 0
}
func (q *queue) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue) Push(x any)    { q.list = append(q.list, x.(ranked)) } //nolint:forcetypeassert // the queue's own
func (q *queue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
