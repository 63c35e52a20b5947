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

// maxSide bounds what a side may bring, inflated, and maxSideWalk how many of
// its commits are looked at for where it comes from.
const (
	maxSide     = 64 << 20
	maxSideWalk = 2000
)

// ErrSideTooLarge is returned by Side for a ref that brings more than 64 MiB.
var ErrSideTooLarge = errors.New("it brings more than 64 MiB that the inputs do not have")

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
// followed, accepted or written. A ref that is not there is fs.ErrNotExist. It
// does not wait for the other verbs, and they do not wait for it.
func (r *Repo) Side(ctx context.Context, ref string, onto tree.Hash) (Side, error) {
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
		set, err = gitobj.ReadPack(pack, maxSide)
		return err
	})
	switch {
	case errors.Is(err, gitobj.ErrPackTooLarge):
		return Side{Commit: head}, fmt.Errorf("read %s: %w", ref, ErrSideTooLarge)
	case err != nil:
		return Side{}, fmt.Errorf("read %s: %w", ref, err)
	case head.IsZero():
		return Side{}, fmt.Errorf("read %s: the remote has no such ref: %w", ref, fs.ErrNotExist)
	}
	s := &sideStore{set: set, under: r.store}
	c, err := s.commit(head)
	if err != nil {
		return Side{}, fmt.Errorf("read %s: %w", ref, err)
	}
	out := Side{Commit: head, Tree: tree.Tree{Store: s, Root: c.Tree}, store: s}
	if out.Base, err = r.sideBase(s, head, onto); err != nil {
		return Side{}, fmt.Errorf("read %s: %w", ref, err)
	}
	if !out.Base.IsZero() {
		base, err := s.commit(out.Base)
		if err != nil {
			return Side{}, fmt.Errorf("read %s: %w", ref, err)
		}
		out.BaseTree = tree.Tree{Store: s, Root: base.Tree}
	}
	return out, nil
}

// sideBase finds the newest commit that head and onto have in common.
func (r *Repo) sideBase(s *sideStore, head, onto tree.Hash) (tree.Hash, error) {
	var common []Commit
	seen := map[tree.Hash]bool{head: true}
	queue := []tree.Hash{head}
	for walked := 0; len(queue) > 0; walked++ {
		if walked == maxSideWalk {
			return tree.Hash{}, fmt.Errorf("it is more than %d commits from the inputs", maxSideWalk)
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
		return nil, true, fmt.Errorf("object %s is a %s, not a %s", h, o.Type, want)
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
		return nil, err
	}
	if ok {
		return gitobj.DecodeDir(data)
	}
	if err := s.missing(h); err != nil {
		return nil, err
	}
	return s.under.Dir(h)
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
