package verify

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// History is where commits are read. gitrepo.Repo is one.
type History interface {
	// RawCommit is a commit object's bytes as they are stored.
	RawCommit(tree.Hash) ([]byte, error)
	// Tree is the tree of a commit.
	Tree(commit tree.Hash) (tree.Tree, error)
}

// commit is what the walk needs of one.
type commit struct {
	hash    tree.Hash
	parents []tree.Hash
	root    tree.Hash
	author  string
	when    time.Time
	// changes are the paths of the inputs in which it differs from each parent,
	// sorted, once they were looked for.
	changes [][]change
}

// change is a path with what stands there in the parent and in the commit.
type change struct {
	path    string
	was, is tree.Entry
}

// commits reads commits and remembers them.
type commits struct {
	history History
	known   map[tree.Hash]*commit
}

func (cs *commits) get(h tree.Hash) (*commit, error) {
	if c := cs.known[h]; c != nil {
		return c, nil
	}
	raw, err := cs.history.RawCommit(h)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	d, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, fmt.Errorf("verify commit %s: %w", h.Short(), err)
	}
	c := &commit{hash: h, parents: d.Parents, root: d.Tree, author: d.Author.String(), when: d.Committer.When}
	cs.known[h] = c
	return c, nil
}

// changesOf are a commit's changes of the inputs against each of its parents;
// a commit without any is compared with nothing.
func (cs *commits) changesOf(c *commit) ([][]change, error) {
	if c.changes != nil {
		return c.changes, nil
	}
	is, err := cs.history.Tree(c.hash)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	parents := c.parents
	if len(parents) == 0 {
		parents = []tree.Hash{{}}
	}
	out := make([][]change, len(parents))
	for i, p := range parents {
		was, err := cs.history.Tree(p)
		if err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		if out[i], err = diff(was, is); err != nil {
			return nil, fmt.Errorf("verify commit %s: %w", c.hash.Short(), err)
		}
		slices.SortFunc(out[i], func(a, b change) int { return cmp.Compare(a.path, b.path) })
	}
	c.changes = out
	return out, nil
}

// inputNames are what people write at the top of a fleet repo.
var inputNames = []string{"fleet.yaml", "clusters", "tenants", "flavors", "prices", "intents", "bases", "pki", "overlays"}

// diff lists the paths of the inputs in which two trees differ. It opens only
// what differs.
func diff(was, is tree.Tree) ([]change, error) {
	a, err := was.Entries()
	if err != nil {
		return nil, err
	}
	b, err := is.Entries()
	if err != nil {
		return nil, err
	}
	out := []change{}
	for _, name := range inputNames {
		x, y := named(a, name), named(b, name)
		if x == y {
			continue
		}
		if fx, fy := leaf(x), leaf(y); fx != fy {
			out = append(out, change{name, fx, fy})
		}
		err := tree.Diff(below(was, x), below(is, y), func(p string, from, to tree.Entry) error {
			out = append(out, change{name + "/" + p, from, to})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func named(list []tree.Entry, name string) tree.Entry {
	if i := slices.IndexFunc(list, func(e tree.Entry) bool { return e.Name == name }); i >= 0 {
		return list[i]
	}
	return tree.Entry{}
}

// leaf is an entry unless it is a directory.
func leaf(e tree.Entry) tree.Entry {
	if e.Kind == tree.Dir {
		return tree.Entry{}
	}
	return e
}

func below(t tree.Tree, e tree.Entry) tree.Tree {
	if e.Kind != tree.Dir {
		return tree.Tree{}
	}
	return tree.Tree{Store: t.Store, Root: e.Hash}
}

// newest is a queue of commits by time, then by name.
type newest []*commit

func (q newest) Len() int { return len(q) }
func (q newest) Less(i, j int) bool {
	if !q[i].when.Equal(q[j].when) {
		return q[i].when.After(q[j].when)
	}
	return slices.Compare(q[i].hash[:], q[j].hash[:]) < 0
}
func (q newest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *newest) Push(x any)   { *q = append(*q, x.(*commit)) }
func (q *newest) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}

// Sides from which a walk reaches a commit.
const (
	left = 1 << iota
	right
	// common: a common ancestor was found above it.
	common
)

// paint walks back from two commits, newest first, until only what lies below
// common ancestors is left, and returns from which sides it came to each commit
// and the common ancestors. Dates order the walk and decide nothing: no best
// common ancestor is missed, whatever they say, but one may be listed that is
// an ancestor of another.
func (cs *commits) paint(ctx context.Context, a, b tree.Hash) (map[tree.Hash]int, []tree.Hash, error) {
	sides := map[tree.Hash]int{}
	q := &newest{}
	push := func(h tree.Hash, f int) error {
		if sides[h]|f == sides[h] {
			return nil
		}
		sides[h] |= f
		c, err := cs.get(h)
		if err == nil {
			heap.Push(q, c)
		}
		return err
	}
	if err := push(a, left); err != nil {
		return nil, nil, err
	}
	if err := push(b, right); err != nil {
		return nil, nil, err
	}
	const slop = 8 // steps more, for clocks that differ
	best := map[tree.Hash]bool{}
	for extra := slop; q.Len() > 0 && extra > 0; {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		c := heap.Pop(q).(*commit)
		f := sides[c.hash]
		if f == left|right {
			best[c.hash] = true
			f |= common
		}
		for _, p := range c.parents {
			if err := push(p, f); err != nil {
				return nil, nil, err
			}
		}
		if slices.ContainsFunc(*q, func(c *commit) bool { return sides[c.hash]&common == 0 }) {
			extra = slop
		} else {
			extra--
		}
	}
	var out []tree.Hash
	for h := range best {
		if sides[h]&common == 0 {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b tree.Hash) int { return slices.Compare(a[:], b[:]) })
	return sides, out, nil
}

// maxBases bounds how many common ancestors of two sides are compared. A
// history with more is nobody's doing by accident.
const maxBases = 8

// bases are the best common ancestors of two commits; ok is false when there
// are too many to compare.
func (cs *commits) bases(ctx context.Context, a, b tree.Hash) (list []tree.Hash, ok bool, err error) {
	_, list, err = cs.paint(ctx, a, b)
	if err != nil || len(list) > maxBases {
		return nil, false, err
	}
	drop := map[tree.Hash]bool{}
	for _, x := range list {
		for _, y := range list {
			if x == y || drop[y] {
				continue
			}
			_, of, err := cs.paint(ctx, x, y)
			if err != nil {
				return nil, false, err
			}
			if slices.Equal(of, []tree.Hash{x}) { // x is below y
				drop[x] = true
			}
		}
	}
	return slices.DeleteFunc(list, func(h tree.Hash) bool { return drop[h] }), true, nil
}
