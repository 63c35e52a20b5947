package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// SideBounds are what a side may bring.
type SideBounds struct {
	// Bytes of its objects, inflated.
	Bytes int64
	// Entries and TreeBytes are what its tree may have more than that of the inputs,
	// counted where it stands.
	Entries, TreeBytes int64
	// Commits that are looked at for where it comes from.
	Commits int
}

// The bounds of a branch of the repository, and of one of a fork.
var (
	BranchBounds = SideBounds{Bytes: 64 << 20, Entries: 20_000, TreeBytes: 256 << 20, Commits: 2000}
	ForkBounds   = SideBounds{Bytes: 8 << 20, Entries: 2_000, TreeBytes: 32 << 20, Commits: 200}
)

// ErrSideTooLarge is returned by Side for a ref that brings more bytes or commits
// than its bounds.
var ErrSideTooLarge = errors.New("it is larger than is read")

// Side is a commit beside what the daemon follows: the head of a pull request.
type Side struct {
	Commit tree.Hash
	Tree   tree.Tree
	// Base is the newest commit that it has in common with the commit it was
	// looked at from; zero when there is none.
	Base     tree.Hash
	BaseTree tree.Tree

	store *sideStore
}

// RawCommit is Repo.RawCommit for what the side brought too.
func (s Side) RawCommit(h tree.Hash) ([]byte, error) {
	data, ok, err := s.store.find(h, gitobj.Commit)
	if ok || err != nil {
		return data, err
	}
	if err := s.store.missing(h); err != nil {
		return nil, err
	}
	return s.store.under.rawCommit(h)
}

// TreeOf is the tree of a commit of the side's history.
func (s Side) TreeOf(h tree.Hash) (tree.Tree, error) {
	if h.IsZero() {
		return tree.Tree{}, nil
	}
	c, err := s.store.commit(h)
	if err != nil {
		return tree.Tree{}, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return tree.Tree{Store: s.store, Root: c.Tree}, nil
}

// Side reads a ref of the remote that is not followed, and where it comes from
// as seen from onto, a commit that the local copy holds. Its objects are kept
// for as long as the result is, apart from the local copy; nothing of it is
// followed, accepted or written. A ref that is not there is fs.ErrNotExist, a
// tree that git refuses or that is too large a *tree.BrokenError. It does not
// wait for the other verbs, and they do not wait for it.
func (r *Repo) Side(ctx context.Context, ref string, onto tree.Hash, bounds SideBounds) (Side, error) {
	r.mu.Lock()
	have := r.haves()
	r.mu.Unlock()
	var head tree.Hash
	set := gitobj.Set{}
	err := r.remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, has []tree.Hash) {
		head = refs[ref]
		if head.IsZero() || r.store.has(head) {
			return nil, nil
		}
		return []tree.Hash{head}, have
	}, func(pack io.Reader) (err error) {
		set, err = gitobj.ReadPack(pack, bounds.Bytes)
		return err
	})
	switch {
	case errors.Is(err, gitobj.ErrPackTooLarge):
		return Side{Commit: head}, fmt.Errorf("read %s: %w: it brings more than %d MiB that the inputs do not have", ref, ErrSideTooLarge, bounds.Bytes>>20)
	case err != nil:
		return Side{}, fmt.Errorf("read %s: %w", ref, err)
	case head.IsZero():
		return Side{}, fmt.Errorf("read %s: the remote has no such ref: %w", ref, fs.ErrNotExist)
	}
	s := &sideStore{set: set, under: r.store}
	c, err := s.commit(head)
	var t tree.Tree
	if err == nil {
		t, err = r.vetSide(tree.Tree{Store: s, Root: c.Tree}, onto, bounds)
	}
	if err != nil {
		return Side{Commit: head}, fmt.Errorf("read %s: %w", ref, err)
	}
	out := Side{Commit: head, Tree: t, store: s}
	if out.Base, err = r.sideBase(s, head, onto, bounds.Commits); err != nil {
		return Side{Commit: head}, fmt.Errorf("read %s: %w", ref, err)
	}
	if !out.Base.IsZero() {
		base, err := s.commit(out.Base)
		if err != nil {
			return Side{}, fmt.Errorf("read %s: %w", ref, err)
		}
		out.BaseTree, err = r.vetter.Bounded(tree.Tree{Store: s, Root: base.Tree})
		if err == nil {
			_, err = r.vetter.Whole(out.BaseTree, nil)
		}
		if err != nil {
			return Side{Commit: head}, fmt.Errorf("read %s: the commit that it branches off: %w", ref, err)
		}
	}
	return out, nil
}

// vetSide refuses a side's tree that is broken, or that has much more than the
// inputs: a pull request is read by a daemon that nobody has allowed it to busy. It
// returns the tree as it is read.
func (r *Repo) vetSide(t tree.Tree, onto tree.Hash, bounds SideBounds) (tree.Tree, error) {
	base, err := r.Said(onto)
	if err != nil {
		return t, err
	}
	was, err := r.vetter.Whole(base, nil)
	if err != nil && !errors.As(err, new(*tree.BrokenError)) {
		return t, err
	}
	if t, err = r.vetter.Bounded(t); err != nil {
		return t, err
	}
	is, err := r.vetter.Whole(t, nil)
	switch {
	case err != nil:
		return t, err
	case is.Entries > was.Entries+bounds.Entries:
		return t, &tree.BrokenError{Why: fmt.Sprintf("it has %d entries more than the inputs, at most %d are read", is.Entries-was.Entries, bounds.Entries)}
	case is.Bytes > was.Bytes+bounds.TreeBytes:
		return t, &tree.BrokenError{Why: fmt.Sprintf("its files have %d bytes more than those of the inputs, at most %d are read", is.Bytes-was.Bytes, bounds.TreeBytes)}
	}
	return t, nil
}

// sideBase finds the newest commit that head and onto have in common.
func (r *Repo) sideBase(s *sideStore, head, onto tree.Hash, most int) (tree.Hash, error) {
	var common []Commit
	seen := map[tree.Hash]bool{head: true}
	queue := []tree.Hash{head}
	for walked := 0; len(queue) > 0; walked++ {
		if walked == most {
			return tree.Hash{}, fmt.Errorf("%w: it is more than %d commits from the inputs", ErrSideTooLarge, most)
		}
		h := queue[0]
		queue = queue[1:]
		if !s.brought(h) {
			in, err := r.isAncestor(h, onto)
			if err != nil {
				return tree.Hash{}, err
			}
			if in {
				c, err := r.info(h)
				if err != nil {
					return tree.Hash{}, err
				}
				common = append(common, c)
				continue
			}
		}
		c, err := s.commit(h)
		if err != nil {
			return tree.Hash{}, err
		}
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return r.newest(common)
}

// newest is the one of some commits that is no ancestor of another; of several
// such the last written, so that the answer is always the same.
func (r *Repo) newest(list []Commit) (tree.Hash, error) {
	if len(list) == 0 {
		return tree.Hash{}, nil
	}
	slices.SortFunc(list, func(a, b Commit) int {
		return cmp.Or(b.When().Compare(a.When()), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	best := list[0].Hash
	for _, c := range list[1:] {
		after, err := r.isAncestor(best, c.Hash)
		if err != nil {
			return tree.Hash{}, err
		}
		if after {
			best = c.Hash
		}
	}
	return best, nil
}

// sideStore looks into what a side brought and then into the local copy. An
// object that neither has does not cast doubt on the local copy.
type sideStore struct {
	set   gitobj.Set
	under *store
}

func (s *sideStore) brought(h tree.Hash) bool {
	_, ok := s.set[h]
	return ok
}

func (s *sideStore) missing(h tree.Hash) error {
	if h == emptyTree || s.under.has(h) {
		return nil
	}
	return fmt.Errorf("object %s was not sent", h)
}

func (s *sideStore) find(h tree.Hash, want gitobj.Type) (data []byte, ok bool, err error) {
	o, ok := s.set[h]
	if ok && o.Type != want {
		return nil, true, &wrongType{h, o.Type, want}
	}
	return o.Data, ok, nil
}

func (s *sideStore) commit(h tree.Hash) (gitobj.CommitData, error) {
	data, ok, err := s.find(h, gitobj.Commit)
	if err != nil {
		return gitobj.CommitData{}, err
	}
	if ok {
		return gitobj.ParseCommit(data)
	}
	if err := s.missing(h); err != nil {
		return gitobj.CommitData{}, err
	}
	return s.under.commit(h)
}

// Dir implements tree.Store.
func (s *sideStore) Dir(h tree.Hash) ([]tree.Entry, error) {
	data, ok, err := s.find(h, gitobj.Tree)
	if err != nil {
		return nil, &tree.BrokenError{Why: err.Error()}
	}
	if ok {
		return gitobj.DecodeDir(data)
	}
	if err := s.missing(h); err != nil {
		return nil, err
	}
	return s.under.Dir(h)
}

// Size implements tree.Sizer.
func (s *sideStore) Size(h tree.Hash) (int64, error) {
	data, ok, err := s.find(h, gitobj.Blob)
	switch {
	case err != nil:
		return 0, &tree.BrokenError{Why: err.Error()}
	case ok:
		return int64(len(data)), nil
	}
	if err := s.missing(h); err != nil {
		return 0, err
	}
	return s.under.Size(h)
}

// File implements tree.Store.
func (s *sideStore) File(h tree.Hash, limit int64) ([]byte, error) {
	data, ok, err := s.find(h, gitobj.Blob)
	switch {
	case err != nil:
		return nil, err
	case ok && limit > 0 && int64(len(data)) > limit:
		return nil, tree.ErrTooLarge
	case ok:
		return data, nil
	}
	if err := s.missing(h); err != nil {
		return nil, err
	}
	return s.under.File(h, limit)
}
