package gitrepo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// BrokenCommit is a commit that says nothing: git refuses its tree, its tree is too
// large to be walked, or it merges too many. What stood before it stays in force.
type BrokenCommit struct {
	Commit Commit
	// Path of the directory that is broken; "": the whole tree.
	Path string
	Why  string
}

// Vetter finds out which trees are whole. It is shared by all who read this
// repository, because it remembers what it has looked at.
func (r *Repo) Vetter() *tree.Vetter { return r.vetter }

// Said is what a commit says of the inputs: its own tree, or that of the newest
// commit before it, along first parents, whose tree is whole; of either what
// tree.Vetter.Bounded makes.
func (r *Repo) Said(commit tree.Hash) (tree.Tree, error) {
	return r.inputs(tree.Hash{}).tree(commit)
}

// view is the history as far as it says something under some top-level names.
type view struct {
	r     *Repo
	names []string
	// anchor is a commit that was accepted: a merge that says nothing leaves in
	// force what stood on the side where that is.
	anchor tree.Hash
}

// inputs is the view of what people write, ledger of what only the daemon writes.
func (r *Repo) inputs(anchor tree.Hash) view { return view{r, r.opts.InputPaths, anchor} }

func (r *Repo) ledger(anchor tree.Hash) view {
	var names []string
	for _, g := range r.opts.Generated {
		names = append(names, strings.TrimSuffix(g, "/"))
	}
	return view{r, names, anchor}
}

// under is the view of the side on which the prefixes lie.
func (r *Repo) under(anchor tree.Hash, prefixes ...string) view {
	v := r.ledger(anchor)
	for _, p := range prefixes {
		top, _, _ := strings.Cut(strings.Trim(p, "/"), "/")
		if !slices.Contains(v.names, top) {
			return r.inputs(anchor)
		}
	}
	return v
}

// broken is why a commit says nothing, nil when its tree is whole.
func (v view) broken(c Commit) (*tree.BrokenError, error) {
	if why := tree.CheckParents(len(c.Parents)); why != nil {
		return why, nil
	}
	_, err := v.r.vetter.Whole(tree.Tree{Store: v.r.store, Root: c.Tree}, v.names)
	var broken *tree.BrokenError
	if errors.As(err, &broken) {
		return broken, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the tree of %s: %w", c.Hash.Short(), err)
	}
	return nil, nil //nolint:nilnil // nothing is broken
}

// said is the commit whose tree a commit says, zero when there is none, and the
// commits from the one back to the other that say nothing.
func (v view) said(h tree.Hash) (tree.Hash, []BrokenCommit, error) {
	var out []BrokenCommit
	for !h.IsZero() {
		c, err := v.r.info(h)
		if err != nil {
			return h, nil, err
		}
		broken, err := v.broken(c)
		if err != nil || broken == nil {
			return h, out, err
		}
		out = append(out, BrokenCommit{c, broken.Path, broken.Why})
		if h, err = v.parent(c); err != nil {
			return h, nil, err
		}
	}
	return h, out, nil
}

// parent is the one that a commit which says nothing leaves as it is.
func (v view) parent(c Commit) (tree.Hash, error) {
	if len(c.Parents) == 0 {
		return tree.Hash{}, nil
	}
	if len(c.Parents) > 1 && !v.anchor.IsZero() {
		for _, p := range c.Parents {
			if in, err := v.r.isAncestor(v.anchor, p); err != nil || in {
				return p, err
			}
		}
	}
	return c.Parents[0], nil
}

// tree is what a commit says, as it is read.
func (v view) tree(h tree.Hash) (tree.Tree, error) {
	t, err := v.stored(h)
	if err != nil {
		return tree.Tree{}, err
	}
	if !slices.Contains(v.names, "intents") {
		return t, nil
	}
	return v.r.vetter.Bounded(t)
}

// stored is what a commit says with what is too large of tenants: to look one path
// up in it, or to build a commit on it. Nobody walks it.
func (v view) stored(h tree.Hash) (tree.Tree, error) {
	at, _, err := v.said(h)
	if err != nil {
		return tree.Tree{}, err
	}
	return v.r.Tree(at)
}

// ground is what our commits are built on: the tree of a commit of the ledger,
// or, where that is broken, one in which the generated directories are as they
// were before. The objects are those that it takes to repair it.
func (r *Repo) ground(h tree.Hash) (t tree.Tree, objects gitobj.Set, err error) {
	v := r.ledger(r.anchor())
	at, broken, err := v.said(h)
	if err != nil {
		return tree.Tree{}, nil, err
	}
	if t, err = r.Tree(at); err != nil || len(broken) == 0 {
		return t, nil, err
	}
	head, err := r.Tree(h)
	if err != nil {
		return tree.Tree{}, nil, err
	}
	entries, err := head.Entries()
	if errors.As(err, new(*tree.BrokenError)) {
		return t, nil, nil // nothing of it can be kept
	}
	if err != nil {
		return tree.Tree{}, nil, err
	}
	old, err := t.Entries()
	if err != nil {
		return tree.Tree{}, nil, err
	}
	ours := func(e tree.Entry) bool { return slices.Contains(v.names, e.Name) }
	kept := slices.DeleteFunc(slices.Clone(entries), ours)
	kept = append(kept, slices.DeleteFunc(slices.Clone(old), func(e tree.Entry) bool { return !ours(e) })...)
	tree.Sort(kept)
	objects = gitobj.Set{}
	root := objects.Add(gitobj.Tree, tree.EncodeDir(kept))
	return tree.Tree{Store: &sideStore{objects, r.store}, Root: root}, objects, nil
}

// anchor is the accepted head of the ledger. The caller holds mu.
func (r *Repo) anchor() tree.Hash {
	if a := r.known(); !a.Ledger.IsZero() || r.identity.Load().Signed {
		return a.Ledger
	}
	return r.refs[acceptedLedgerRef]
}
