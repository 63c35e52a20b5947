package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// History is the objects of a fleet repository. It is safe for concurrent use.
type History interface {
	tree.Store
	// Commit is a commit's body as it is stored.
	Commit(h tree.Hash) ([]byte, error)
}

// Commit is one commit of the history.
type Commit struct {
	Hash tree.Hash
	// CommitData is what it says. Where git refuses its tree, or it is too large to
	// be walked, Tree is what the commit before says of the ledger.
	gitobj.CommitData
	// Root is its tree as it is stored, Inputs what it says of the inputs, Broken
	// why it says nothing of the ledger.
	Root, Inputs tree.Hash
	Broken       *tree.BrokenError
	// From is the parent whose ledger it continues; zero: none.
	From tree.Hash
	// dropped is what a merge takes back of what other parents had decided.
	dropped []change
	// Proof is the commit whose signature speaks for it; zero: its own.
	Proof tree.Hash
}

// proof is the commit whose signature speaks for it.
func (c *Commit) proof() tree.Hash {
	if c.Proof.IsZero() {
		return c.Hash
	}
	return c.Proof
}

// Trailer is the first value of a trailer, or empty.
func (c *Commit) Trailer(key string) string {
	if all := gitobj.Trailers(c.Message, key); len(all) > 0 {
		return all[0]
	}
	return ""
}

// generated are the directories that only the daemon writes.
var generated = []string{ledger.Root, manifests.Root, ledger.RequestsRoot, v1alpha1.SourcesRoot}

// reader reads a history.
type reader struct {
	h History
	// generated directories by root tree: consecutive commits share them.
	roots map[tree.Hash][4]tree.Entry
	// offers are commits of ours that people may have merged, by what they generate.
	offers map[[4]tree.Entry][]offer
	// vetter knows which trees are whole, said what commits say that are broken.
	vetter *tree.Vetter
	said   map[tree.Hash]said
	// ancestry is what lies between commits.
	ancestry *ancestry.Graph
}

func newReader(h History) *reader {
	r := &reader{h: h, roots: map[tree.Hash][4]tree.Entry{}, vetter: tree.NewVetter(tree.DefaultBounds), said: map[tree.Hash]said{}}
	r.ancestry = ancestry.New(r.parents)
	return r
}

func (r *reader) commit(h tree.Hash) (*Commit, error) {
	c, err := r.stored(h)
	if err != nil {
		return nil, err
	}
	s, err := r.says(c)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	c.Tree, c.Inputs, c.Broken = s.ledger, s.inputs, s.broken
	return c, nil
}

// stored is a commit as it is stored.
func (r *reader) stored(h tree.Hash) (*Commit, error) {
	raw, err := r.h.Commit(h)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	data, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return &Commit{Hash: h, CommitData: data, Root: data.Tree}, nil
}

// generated are what stands in a root tree at the names of the generated
// directories: others may have put a file or a link there. Zero where one is
// absent.
func (r *reader) generated(root tree.Hash) (out [4]tree.Entry, err error) {
	if root.IsZero() {
		return out, nil
	}
	if known, ok := r.roots[root]; ok {
		return known, nil
	}
	entries, err := r.h.Dir(root)
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if i := slices.Index(generated, e.Name); i >= 0 {
			out[i] = e
		}
	}
	if len(r.roots) > 4096 {
		clear(r.roots)
	}
	r.roots[root] = out
	return out, nil
}

// line is the ledger's own line of history, oldest first: from head back, at a
// merge along the parent that it continues. It ends before from, or with the
// first commit.
func (g *graph) line(ctx context.Context, head, from tree.Hash) ([]*Commit, error) {
	var out []*Commit
	for h := head; !h.IsZero() && h != from; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := g.commit(h)
		if err != nil {
			return nil, err
		}
		if err := g.continued(ctx, c); err != nil {
			return nil, err
		}
		out = append(out, c)
		h = c.From
		if h.IsZero() && !from.IsZero() {
			return nil, fmt.Errorf("commit %s is not in the history of the ledger at %s", from.Short(), head.Short())
		}
	}
	slices.Reverse(out)
	return out, nil
}

// change is one generated file that a commit changed; a zero entry is absent.
type change struct {
	path   string
	before tree.Entry
	after  tree.Entry
}

// changes are the generated files in which two root trees differ.
func (r *reader) changes(from, to tree.Hash) ([]change, error) {
	a, err := r.generated(from)
	if err != nil {
		return nil, err
	}
	b, err := r.generated(to)
	if err != nil {
		return nil, err
	}
	var out []change
	for i, dir := range generated {
		if was, is := fileOf(a[i]), fileOf(b[i]); was != is {
			out = append(out, change{dir, was, is})
		}
		err := tree.Diff(r.under(a[i]), r.under(b[i]), func(path string, was, is tree.Entry) error {
			out = append(out, change{dir + "/" + path, was, is})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *reader) tree(root tree.Hash) tree.Tree { return tree.Tree{Store: r.h, Root: root} }

// under is the directory that an entry is, the empty tree of what is none.
func (r *reader) under(e tree.Entry) tree.Tree {
	if e.Kind != tree.Dir {
		return tree.Tree{}
	}
	return r.tree(e.Hash)
}

// fileOf is an entry that is no directory, zero for a directory.
func fileOf(e tree.Entry) tree.Entry {
	if e.Kind == tree.Dir {
		return tree.Entry{}
	}
	return e
}

// find is an entry of a tree, zero where there is none.
func (r *reader) find(root tree.Hash, path string) (tree.Entry, error) {
	e, err := r.tree(root).Find(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Entry{}, nil
	}
	return e, err
}
