package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
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
	// changes are the paths of the inputs in which it differs from each parent,
	// sorted, once they were looked for.
	changes [][]change
	// broken is why it says nothing, once that was looked for.
	vetted bool
	broken *tree.BrokenError
	// said is whose tree a broken one says, found when so many lines were known.
	said struct {
		at    tree.Hash
		lines int
		known bool
	}
}

// change is a path with what stands there in the parent and in the commit.
type change struct {
	path    string
	was, is tree.Entry
}

// commits reads commits and remembers them.
type commits struct {
	history History
	vetter  *tree.Vetter
	graph   *ancestry.Graph
	known   map[tree.Hash]*commit
	// main is the parent on the branch's own line, of its commits.
	main map[tree.Hash]tree.Hash
	// lines counts how often main changed.
	lines int
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
	c := &commit{hash: h, parents: d.Parents, root: d.Tree, author: d.Author.String()}
	cs.known[h] = c
	return c, nil
}

// changesOf are a commit's changes of the inputs against each of its parents;
// a commit without any is compared with nothing.
func (cs *commits) changesOf(c *commit) ([][]change, error) {
	if c.changes != nil {
		return c.changes, nil
	}
	is, err := cs.tree(c.hash)
	if err != nil {
		return nil, err
	}
	parents := c.parents
	if len(parents) == 0 {
		parents = []tree.Hash{{}}
	}
	out := make([][]change, len(parents))
	for i, p := range parents {
		was, err := cs.tree(p)
		if err != nil {
			return nil, err
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

// maxBases bounds how many common ancestors of two sides are compared. A
// history with more is nobody's doing by accident.
const maxBases = 8

// bases are the best common ancestors of two commits; ok is false when there
// are too many to compare.
func (cs *commits) bases(ctx context.Context, a, b tree.Hash) (list []tree.Hash, ok bool, err error) {
	list, err = cs.graph.Bases(ctx, a, b)
	return list, err == nil && len(list) <= maxBases, err
}

// only reads the commits that one has and another has not, and tells them from
// others.
func (cs *commits) only(ctx context.Context, head, without tree.Hash) (in func(tree.Hash) bool, err error) {
	list, err := cs.graph.Only(ctx, head, without)
	if err != nil {
		return nil, err
	}
	of := make(map[tree.Hash]bool, len(list))
	for _, h := range list {
		if _, err := cs.get(h); err != nil {
			return nil, err
		}
		of[h] = true
	}
	return func(h tree.Hash) bool { return of[h] }, nil
}

// ParentsOf reads the parents of commits for a graph.
func ParentsOf(h History) ancestry.Parents {
	return func(c tree.Hash) ([]tree.Hash, error) {
		raw, err := h.RawCommit(c)
		if err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		d, err := gitobj.ParseCommit(raw)
		if err != nil {
			return nil, fmt.Errorf("verify commit %s: %w", c.Short(), err)
		}
		return d.Parents, nil
	}
}
