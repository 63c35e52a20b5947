package gitrepo

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Commit is a commit as readers of history see it.
type Commit struct {
	Hash      tree.Hash
	Tree      tree.Hash
	Parents   []tree.Hash
	Author    gitobj.Person
	Committer gitobj.Person
	Message   string
	// Signed tells that it carries a signature; whose is another question.
	Signed bool
}

// IsZero tells that there is no commit.
func (c Commit) IsZero() bool { return c.Hash.IsZero() }

// When is the committer's time.
func (c Commit) When() time.Time { return c.Committer.When }

// Subject is the message's first line.
func (c Commit) Subject() string { return gitobj.Subject(c.Message) }

// Trailers are the values of a trailer, in order.
func (c Commit) Trailers(key string) []string { return gitobj.Trailers(c.Message, key) }

// Trailer is the first value of a trailer, or empty.
func (c Commit) Trailer(key string) string {
	if t := c.Trailers(key); len(t) > 0 {
		return t[0]
	}
	return ""
}

func (r *Repo) info(h tree.Hash) (Commit, error) {
	c, err := r.store.commit(h)
	if err != nil {
		return Commit{}, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return Commit{
		Hash: h, Tree: c.Tree, Parents: c.Parents, Author: c.Author, Committer: c.Committer,
		Message: c.Message, Signed: c.Signature != "",
	}, nil
}

// Info reads a commit (like all readers of history without the verbs'
// lock, for what has a name does not change) that the local copy holds.
func (r *Repo) Info(h tree.Hash) (Commit, error) { return r.info(h) }

// RawCommit is a commit object's bytes as they are stored, which are what its
// signature covers. Like Info it takes no lock.
func (r *Repo) RawCommit(h tree.Hash) ([]byte, error) { return r.store.rawCommit(h) }

// Graph answers what lies between commits. It is shared by all who read this
// repository.
func (r *Repo) Graph() *ancestry.Graph { return r.graph }

// parents reads those of a commit for the graph.
func (r *Repo) parents(h tree.Hash) ([]tree.Hash, error) {
	c, err := r.store.commit(h)
	if err != nil {
		return nil, fmt.Errorf("walk history: %w", err)
	}
	return c.Parents, nil
}

// IsAncestor reports whether a commit can be reached from another, by what was
// fetched last; a commit is its own ancestor.
func (r *Repo) IsAncestor(a, b tree.Hash) (bool, error) { return r.isAncestor(a, b) }

// isAncestor tells whether a can be reached from b; a commit is its own
// ancestor.
func (r *Repo) isAncestor(a, b tree.Hash) (bool, error) {
	if !r.store.has(a) {
		return false, nil
	}
	return r.graph.Holds(context.Background(), b, a)
}

// byTime is a queue of commits, newest first; equal times by name, so that
// walks are deterministic.
type byTime []Commit

func (q byTime) Len() int { return len(q) }
func (q byTime) Less(i, j int) bool {
	if !q[i].When().Equal(q[j].When()) {
		return q[i].When().After(q[j].When())
	}
	return slices.Compare(q[i].Hash[:], q[j].Hash[:]) < 0
}
func (q byTime) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(x any)   { *q = append(*q, x.(Commit)) }
func (q *byTime) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}

// between lists the commits reachable from to and not from from (zero: the
// whole history), each before its ancestors, whatever their dates.
func (r *Repo) between(ctx context.Context, from, to tree.Hash) ([]Commit, error) {
	list, err := r.graph.Only(ctx, to, from)
	if err != nil {
		return nil, err
	}
	out := make([]Commit, len(list))
	for i, h := range list {
		if out[i], err = r.info(h); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ChangeKind says what happened to a path.
type ChangeKind uint8

// What can happen to a path.
const (
	Added ChangeKind = iota + 1
	Modified
	Deleted
)

// Change is the difference of one path between two commits, and the newest
// commit in between that touched it.
type Change struct {
	Kind   ChangeKind
	Commit Commit
}

// Changes are the paths under prefix (a directory; empty: everything) that
// differ between two commits, with who changed them last. It opens only what
// differs and walks the commits in between once.
func (r *Repo) Changes(ctx context.Context, from, to tree.Hash, prefix string) (map[string]Change, error) {
	v := r.under(from, prefix)
	a, err := v.tree(from)
	if err != nil {
		return nil, err
	}
	b, err := v.tree(to)
	if err != nil {
		return nil, err
	}
	out := map[string]Change{}
	open := map[string]bool{}
	if err := diffUnder(a, b, prefix, func(p string, was, is tree.Entry) error {
		ch := Change{Kind: Modified}
		switch {
		case was.Hash.IsZero():
			ch.Kind = Added
		case is.Hash.IsZero():
			ch.Kind = Deleted
		}
		out[p], open[p] = ch, true
		return nil
	}); err != nil {
		return nil, err
	}
	if len(open) == 0 {
		return out, nil
	}
	commits, err := r.between(ctx, from, to)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		touched, err := v.touched(c, []string{prefix})
		if err != nil {
			return nil, err
		}
		for _, p := range touched {
			if open[p] {
				delete(open, p)
				out[p] = Change{out[p].Kind, c}
			}
		}
		if len(open) == 0 {
			break
		}
	}
	return out, nil
}

// diffUnder is tree.Diff below a directory, with paths from the root.
func diffUnder(a, b tree.Tree, prefix string, fn func(string, tree.Entry, tree.Entry) error) error {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return tree.Diff(a, b, fn)
	}
	ea, err := find(a, prefix)
	if err != nil {
		return err
	}
	eb, err := find(b, prefix)
	if err != nil {
		return err
	}
	sub := func(t tree.Tree, e tree.Entry) tree.Tree {
		if e.Kind != tree.Dir {
			return tree.Tree{}
		}
		return tree.Tree{Store: t.Store, Root: e.Hash}
	}
	if fa, fb := asFile(ea), asFile(eb); fa != fb {
		if err := fn(prefix, fa, fb); err != nil {
			return err
		}
	}
	return tree.Diff(sub(a, ea), sub(b, eb), func(p string, was, is tree.Entry) error {
		return fn(prefix+"/"+p, was, is)
	})
}

func asFile(e tree.Entry) tree.Entry {
	if e.Kind == tree.Dir {
		return tree.Entry{}
	}
	return e
}

// find is Tree.Find with an absent path as the zero Entry.
func find(t tree.Tree, p string) (tree.Entry, error) {
	e, err := t.Find(p)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Entry{}, nil
	}
	return e, err
}

// touched are the paths under any of the prefixes that a commit changed
// itself: those in which it differs from every one of its parents. A commit that
// says nothing changes nothing.
func (v view) touched(c Commit, prefixes []string) ([]string, error) {
	if broken, err := v.broken(c); err != nil || broken != nil {
		return nil, err
	}
	t, err := v.tree(c.Hash)
	if err != nil {
		return nil, err
	}
	parents := c.Parents
	if len(parents) == 0 {
		parents = []tree.Hash{{}}
	}
	counts := map[string]int{}
	var order []string
	for _, p := range parents {
		pt, err := v.tree(p)
		if err != nil {
			return nil, err
		}
		for _, prefix := range prefixes {
			if err := diffUnder(pt, t, prefix, func(name string, _, _ tree.Entry) error {
				if counts[name]++; counts[name] == len(parents) {
					order = append(order, name)
				}
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// LastChange is the commit that last touched a path, seen from a commit. A
// path that is not there has none: a zero Commit.
func (r *Repo) LastChange(ctx context.Context, from tree.Hash, path string) (Commit, error) {
	m, err := r.LastChanges(ctx, from, []string{path})
	return m[path], err
}

// LastChanges is LastChange for many paths in one walk. Paths that are not
// there are left out.
func (r *Repo) LastChanges(ctx context.Context, from tree.Hash, paths []string) (map[string]Commit, error) {
	out := map[string]Commit{}
	v := r.under(tree.Hash{}, paths...)
	t, err := v.stored(from)
	if err != nil || t.IsZero() {
		return out, err
	}
	open := map[tree.Hash]map[string]tree.Entry{from: {}}
	for _, p := range paths {
		e, err := find(t, p)
		if err != nil {
			return nil, err
		}
		if !e.Hash.IsZero() {
			open[from][p] = e
		}
	}
	start, err := r.info(from)
	if err != nil {
		return nil, err
	}
	q := &byTime{start}
	for q.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := heap.Pop(q).(Commit)
		mine := open[c.Hash]
		delete(open, c.Hash)
		for _, parent := range c.Parents {
			if len(mine) == 0 {
				break
			}
			if err := v.handOver(c, parent, mine, open, q); err != nil {
				return nil, err
			}
		}
		for p := range mine {
			out[p] = c
		}
	}
	return out, nil
}

// handOver moves the paths that a parent has just so over to the parent; what
// stays with the child was changed there.
func (v view) handOver(c Commit, parent tree.Hash, mine map[string]tree.Entry, open map[tree.Hash]map[string]tree.Entry, q *byTime) error {
	pc, err := v.r.info(parent)
	if err != nil {
		return err
	}
	pt, err := v.stored(parent)
	if err != nil {
		return err
	}
	look := func(p string, e tree.Entry) (bool, error) {
		pe, err := find(pt, p)
		return pe == e, err
	}
	same := look
	// Many paths: one look at what the commit changed is cheaper than a look
	// at each path.
	if len(mine) > 32 {
		changed := map[string]bool{}
		was, err := v.tree(parent)
		if err != nil {
			return err
		}
		is, err := v.tree(c.Hash)
		if err != nil {
			return err
		}
		for _, name := range v.names {
			if err := diffUnder(was, is, name, func(p string, _, _ tree.Entry) error {
				changed[p] = true
				return nil
			}); err != nil {
				return err
			}
		}
		same = func(p string, e tree.Entry) (bool, error) {
			if e.Kind == tree.Dir {
				return look(p, e)
			}
			if !changed[p] {
				return true, nil
			}
			return look(p, e) // it may only have been left out with its tenant's directory
		}
	}
	theirs, queued := open[parent]
	if theirs == nil {
		theirs = map[string]tree.Entry{}
	}
	for p, e := range mine {
		ok, err := same(p, e)
		if err != nil {
			return err
		}
		if ok {
			theirs[p] = e
			delete(mine, p)
		}
	}
	if len(theirs) > 0 && !queued {
		open[parent] = theirs
		heap.Push(q, pc)
	}
	return nil
}
