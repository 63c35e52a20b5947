package changes

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Repo is the history that is read. *gitrepo.Repo is one.
type Repo interface {
	Info(h tree.Hash) (gitrepo.Commit, error)
	Tree(commit tree.Hash) (tree.Tree, error)
}

// Bounds of walks.
const (
	// maxSteps is how many commits are looked through for one path.
	maxSteps = 5000
	// maxFound is how many changes of one path are kept.
	maxFound = 50
	// maxWalks is how many paths are remembered.
	maxWalks = 500
	// maxWaiting is how many walks may be under way or wait for that.
	maxWaiting = 32
	// recent is how many of a walk's newest commits are kept, one of which a later head is
	// expected to stand on.
	recent = 64
)

// Change is a commit that changed a path.
type Change struct {
	Hash    string        `json:"hash"`
	At      v1alpha1.Time `json:"at"`
	Subject string        `json:"subject,omitempty"`
	Author  string        `json:"author,omitempty"`
	// Signed tells that it carries a signature; whose is another question.
	Signed bool `json:"signed"`
	// What it did: added, changed or removed.
	What string `json:"what"`
	// Merge is the subject of the merge through which it came, "" for none, and MergeHash
	// that commit.
	Merge     string `json:"merge,omitempty"`
	MergeHash string `json:"mergeHash,omitempty"`
	// Pull is the number of the pull request that brought it, as the words of the merge, or
	// else its own, have it; 0 for none.
	Pull int `json:"pull,omitempty"`
	// Alone: it changed nothing outside of the path's second level, such as one tenant's
	// directory.
	Alone bool `json:"-"`
}

// History is what is known of a path.
type History struct {
	// Changes, the newest first.
	Changes []Change
	// Searched is among how many commits, Complete that those were all there are to search.
	Searched int
	Complete bool
}

// Follower follows paths.
type Follower struct {
	repo Repo
	one  chan struct{} // who holds it walks

	mu      sync.Mutex
	walks   map[string]*walk
	uses    uint64
	waiting int
}

// walk is a path's history, as far as it was read from a head.
type walk struct {
	path string
	head tree.Hash
	used uint64
	// under way; closed and nil when it is over
	running chan struct{}
	err     error

	found    []Change
	passed   []place // the newest of them, head first
	searched int
	complete bool
}

// New follows paths of a repository.
func New(repo Repo) *Follower {
	return &Follower{repo: repo, one: make(chan struct{}, 1), walks: map[string]*walk{}}
}

// Of is the history of a path from a head on, as far as it is known after a moment. It goes
// on being read for the next who asks.
func (f *Follower) Of(head tree.Hash, path string, moment time.Duration) (History, error) {
	if head.IsZero() || path == "" {
		return History{}, nil
	}
	f.mu.Lock()
	w := f.walks[path]
	if w == nil {
		w = &walk{path: path}
		f.walks[path] = w
		f.forget()
	}
	f.uses++
	w.used = f.uses
	if w.head != head && w.running == nil && f.waiting < maxWaiting {
		f.waiting++
		w.running = make(chan struct{})
		go f.follow(w, head)
	}
	running := w.running
	f.mu.Unlock()
	if running != nil {
		timer := time.NewTimer(moment)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C:
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return History{Changes: w.found[:len(w.found):len(w.found)], Searched: w.searched, Complete: w.complete}, w.err
}

// forget drops the path that nobody has asked for the longest.
func (f *Follower) forget() {
	if len(f.walks) <= maxWalks {
		return
	}
	var oldest *walk
	for _, w := range f.walks {
		if w.running == nil && w.used > 0 && (oldest == nil || w.used < oldest.used) {
			oldest = w
		}
	}
	if oldest != nil {
		delete(f.walks, oldest.path)
	}
}

// place is where a walk stood with one commit to go on from.
type place struct {
	at              tree.Hash
	found, searched int
}

// follow walks from a head to where the walk was before, or to its end.
func (f *Follower) follow(w *walk, head tree.Hash) {
	f.one <- struct{}{}
	defer func() { <-f.one }()
	f.mu.Lock()
	was := *w
	f.mu.Unlock()
	known := map[tree.Hash]*place{}
	for i := range was.passed {
		known[was.passed[i].at] = &was.passed[i]
	}
	next := walk{path: w.path}
	err := f.tried(&next, head, known, &was, func() {
		if len(was.found) == 0 { // the first time: what there is can be shown
			f.mu.Lock()
			w.found, w.searched = next.found, next.searched
			f.mu.Unlock()
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	w.found, w.passed, w.searched, w.complete, w.head, w.err = next.found, next.passed, next.searched, next.complete, head, err
	close(w.running)
	w.running = nil
	f.waiting--
}

// tried is steps, of which a fault is an error: what people merge ends no daemon.
func (f *Follower) tried(w *walk, head tree.Hash, known map[tree.Hash]*place, was *walk, found func()) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("read the history of %s: %v", w.path, fault)
		}
	}()
	return f.steps(w, head, known, was, found)
}

// step is a commit that is still to be looked at, with its tree and the merge that it is
// reached through.
type step struct {
	commit gitrepo.Commit
	tree   tree.Tree
	merge  *gitrepo.Commit
}

// steps walks from a head as far as there is anything, the bounds allow, or the rest is
// known.
func (f *Follower) steps(w *walk, head tree.Hash, known map[tree.Hash]*place, was *walk, found func()) error {
	open, seen := []step{}, map[tree.Hash]bool{}
	add := func(h tree.Hash, t *tree.Tree, merge *gitrepo.Commit) error {
		if seen[h] {
			return nil
		}
		seen[h] = true
		s := step{merge: merge}
		var err error
		if s.commit, err = f.repo.Info(h); err != nil {
			return fmt.Errorf("read the history of %s: %w", w.path, err)
		}
		if t != nil {
			s.tree = *t
		} else if s.tree, err = f.repo.Tree(h); err != nil {
			return fmt.Errorf("read the history of %s: %w", w.path, err)
		}
		open = append(open, s)
		return nil
	}
	if err := add(head, nil, nil); err != nil {
		return err
	}
	for len(open) > 0 {
		newest := 0
		for i := range open {
			if open[i].commit.When().After(open[newest].commit.When()) {
				newest = i
			}
		}
		s := open[newest]
		open = slices.Delete(open, newest, newest+1)
		if len(open) == 0 {
			if p := known[s.commit.Hash]; p != nil {
				w.join(was, p)
				return nil
			}
			if len(w.passed) < recent {
				w.passed = append(w.passed, place{s.commit.Hash, len(w.found), w.searched})
			}
		}
		if w.searched >= maxSteps || len(w.found) >= maxFound || len(open) > recent {
			return nil
		}
		w.searched++
		same, trees, err := f.parents(&s, w.path)
		if err != nil {
			return err
		}
		if same >= 0 {
			if same > 0 {
				s.merge = &s.commit
			}
			if err := add(s.commit.Parents[same], &trees[same], s.merge); err != nil {
				return err
			}
			continue
		}
		first := tree.Tree{}
		if len(trees) > 0 {
			first = trees[0]
		}
		change, err := changed(&s.commit, first, s.tree, w.path, s.merge)
		if err != nil {
			return fmt.Errorf("read the history of %s at %s: %w", w.path, s.commit.Hash.Short(), err)
		}
		if change != nil {
			w.found = append(w.found, *change)
			found()
		}
		for i, p := range s.commit.Parents {
			if err := add(p, &trees[i], nil); err != nil {
				return err
			}
		}
	}
	w.complete = true
	return nil
}

// parents is the first parent of a commit that has the same at a path, -1 for none, and
// the trees of those that were looked at.
func (f *Follower) parents(s *step, path string) (same int, trees []tree.Tree, err error) {
	for i, p := range s.commit.Parents {
		t, err := f.repo.Tree(p)
		if err != nil {
			return -1, nil, fmt.Errorf("read the history of %s: %w", path, err)
		}
		trees = append(trees, t)
		equal, err := equalAt(t, s.tree, path)
		if err != nil {
			return -1, nil, fmt.Errorf("read the history of %s at %s: %w", path, s.commit.Hash.Short(), err)
		}
		if equal {
			return i, trees, nil
		}
	}
	return -1, trees, nil
}

// join puts what is known from a place on behind what is new.
func (w *walk) join(was *walk, p *place) {
	shift := place{tree.Hash{}, len(w.found) - p.found, w.searched - p.searched}
	for i := range was.passed {
		if q := was.passed[i]; q.searched >= p.searched && q.found+shift.found <= maxFound && len(w.passed) < recent {
			w.passed = append(w.passed, place{q.at, q.found + shift.found, q.searched + shift.searched})
		}
	}
	w.found = append(w.found, was.found[p.found:]...)
	w.found = w.found[:min(len(w.found), maxFound)]
	w.searched += was.searched - p.searched
	w.complete = was.complete
}

// entry is what a tree has under a name; the zero Entry for nothing.
func entry(t tree.Tree, name string) (tree.Entry, error) {
	if t.IsZero() {
		return tree.Entry{}, nil
	}
	e, err := t.Find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Entry{}, nil
	}
	return e, err //nolint:wrapcheck // the caller names path and commit
}

// entries are what two trees have under a name.
func entries(a, b tree.Tree, name string) (inA, inB tree.Entry, err error) {
	if inA, err = entry(a, name); err == nil {
		inB, err = entry(b, name)
	}
	return inA, inB, err
}

// sub is the directory that an entry is; the empty Tree for anything else.
func sub(of tree.Tree, e tree.Entry) tree.Tree {
	if e.Kind != tree.Dir || e.Hash.IsZero() {
		return tree.Tree{}
	}
	return tree.Tree{Store: of.Store, Root: e.Hash}
}

// equalAt reports whether two trees have the same at a path. It opens no more of them than
// differs on the way.
func equalAt(a, b tree.Tree, path string) (bool, error) {
	for {
		if a.Root == b.Root {
			return true, nil
		}
		name, rest, below := strings.Cut(path, "/")
		ea, eb, err := entries(a, b, name)
		if err != nil {
			return false, err
		}
		if ea == eb || !below {
			return ea == eb, nil
		}
		a, b, path = sub(a, ea), sub(b, eb), rest
	}
}

// changed is what a commit did to a path; nil where it has nothing there, as neither have
// its parents.
func changed(c *gitrepo.Commit, before, after tree.Tree, path string, merge *gitrepo.Commit) (*Change, error) {
	was, is, err := entries(before, after, path)
	if err != nil {
		return nil, err
	}
	out := &Change{Hash: c.Hash.String(), At: v1alpha1.TimeOf(c.When()), Subject: c.Subject(), Author: c.Author.Name, Signed: c.Signed, What: "changed"}
	switch {
	case was.Hash.IsZero() && is.Hash.IsZero():
		return nil, nil
	case was.Hash.IsZero():
		out.What = "added"
	case is.Hash.IsZero():
		out.What = "removed"
	}
	out.Pull = PullOf(c)
	if merge != nil {
		out.Merge, out.MergeHash = merge.Subject(), merge.Hash.String()
		if n := PullOf(merge); n > 0 {
			out.Pull = n
		}
	}
	out.Alone, err = alone(before, after, path)
	return out, err
}

// alone reports whether two trees differ in nothing but a path's second level.
func alone(a, b tree.Tree, path string) (bool, error) {
	for range 2 {
		name, rest, below := strings.Cut(path, "/")
		others, err := differ(a, b, name)
		if err != nil || others {
			return false, err
		}
		if !below {
			return true, nil
		}
		ea, eb, err := entries(a, b, name)
		if err != nil {
			return false, err
		}
		a, b, path = sub(a, ea), sub(b, eb), rest
	}
	return true, nil
}

// differ reports whether two directories differ in more than one name.
func differ(a, b tree.Tree, name string) (bool, error) {
	list := func(t tree.Tree) (map[string]tree.Entry, error) {
		out := map[string]tree.Entry{}
		if t.IsZero() {
			return out, nil
		}
		entries, err := t.Entries()
		for _, e := range entries {
			out[e.Name] = e
		}
		return out, err //nolint:wrapcheck // the caller names path and commit
	}
	as, err := list(a)
	if err != nil {
		return false, err
	}
	bs, err := list(b)
	if err != nil {
		return false, err
	}
	for n, e := range as {
		if n != name && bs[n] != e {
			return true, nil
		}
	}
	for n := range bs {
		if _, ok := as[n]; n != name && !ok {
			return true, nil
		}
	}
	return false, nil
}
