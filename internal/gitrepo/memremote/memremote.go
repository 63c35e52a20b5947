package memremote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Kind is an operation of the remote.
type Kind string

// The operations that a fault can hit.
const (
	Refs  Kind = "refs"
	Fetch Kind = "fetch"
	Push  Kind = "push"
)

// Op is one call, as the fault callback sees it. N counts the calls of all
// kinds from 1.
type Op struct {
	Kind Kind
	N    int
	Cmds []gitrepo.Command
}

// Remote is a repository in memory.
type Remote struct {
	// Fault decides what goes wrong: a nil error means nothing does. With an
	// error, apply says whether a push takes effect all the same: the answer
	// was lost. It is called without the Remote's lock and may use the Remote.
	Fault func(Op) (apply bool, err error)
	// Hook may refuse a push by the paths it changes on a ref; the error's text
	// becomes the server's words.
	Hook func(ref string, paths []string) error

	mu      sync.Mutex
	n       int
	objects gitobj.Set
	parsed  map[tree.Hash]gitobj.CommitData // of commits that were read before
	refs    map[string]tree.Hash
}

// New returns an empty repository.
func New() *Remote {
	return &Remote{objects: gitobj.Set{}, parsed: map[tree.Hash]gitobj.CommitData{}, refs: map[string]tree.Hash{}}
}

var _ gitrepo.Remote = (*Remote)(nil)

// InProcess reports that packs need no compression on their way here.
func (m *Remote) InProcess() bool { return true }

func (m *Remote) fault(ctx context.Context, kind Kind, cmds []gitrepo.Command) (apply bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	m.n++
	op := Op{Kind: kind, N: m.n, Cmds: cmds}
	f := m.Fault
	m.mu.Unlock()
	if f == nil {
		return true, nil
	}
	if apply, err := f(op); err != nil {
		return apply, err
	}
	return true, nil
}

// Refs implements gitrepo.Remote.
func (m *Remote) Refs(ctx context.Context) (map[string]tree.Hash, error) {
	if _, err := m.fault(ctx, Refs, nil); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.refs), nil
}

// Fetch implements gitrepo.Remote.
func (m *Remote) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	if _, err := m.fault(ctx, Fetch, nil); err != nil {
		return err
	}
	m.mu.Lock()
	refs := maps.Clone(m.refs)
	m.mu.Unlock()
	want, have := choose(refs)
	if len(want) == 0 {
		return nil
	}
	m.mu.Lock()
	set, err := m.reachable(want, have)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	pack, err := set.PackStored()
	if err != nil {
		return err
	}
	return sink(bytes.NewReader(pack))
}

// reachable gathers what is reachable from want and not from have.
func (m *Remote) reachable(want, have []tree.Hash) (gitobj.Set, error) {
	known := map[tree.Hash]bool{}
	for queue := slices.Clone(have); len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if o, ok := m.objects[h]; ok && !known[h] && o.Type == gitobj.Commit {
			known[h] = true
			c, err := m.commit(h)
			if err != nil {
				return nil, err
			}
			queue = append(queue, c.Parents...)
		}
	}
	set, pairs := gitobj.Set{}, map[[2]tree.Hash]bool{}
	for queue := slices.Clone(want); len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if _, done := set[h]; done || known[h] {
			continue
		}
		c, err := m.commit(h)
		if err != nil {
			return nil, err
		}
		set[h] = m.objects[h]
		var parent tree.Hash
		if len(c.Parents) > 0 {
			p, err := m.commit(c.Parents[0])
			if err != nil {
				return nil, err
			}
			parent = p.Tree
		}
		if err := m.gather(c.Tree, parent, set, pairs); err != nil {
			return nil, err
		}
		queue = append(queue, c.Parents...)
	}
	return set, nil
}

// gather adds the objects below a directory that are not at the same place
// below another. pairs are those compared already.
func (m *Remote) gather(h, other tree.Hash, set gitobj.Set, pairs map[[2]tree.Hash]bool) error {
	pair := [2]tree.Hash{h, other}
	if h == other || pairs[pair] {
		return nil
	}
	pairs[pair] = true
	o, ok := m.objects[h]
	if !ok {
		return fmt.Errorf("object %s: %w", h, fs.ErrNotExist)
	}
	set[h] = o
	if o.Type != gitobj.Tree { // a server sends what is named
		return nil
	}
	entries, err := gitobj.StoredDir(o.Data)
	if err != nil {
		return err
	}
	theirs := map[string]tree.Hash{}
	if oo, ok := m.objects[other]; ok && oo.Type == gitobj.Tree {
		list, err := gitobj.StoredDir(oo.Data)
		if err != nil {
			return err
		}
		for _, e := range list {
			theirs[e.Name] = e.Hash
		}
	}
	for _, e := range entries {
		switch {
		case e.Kind == tree.Submodule || theirs[e.Name] == e.Hash:
		case e.Kind == tree.Dir:
			if err := m.gather(e.Hash, theirs[e.Name], set, pairs); err != nil {
				return err
			}
		default:
			b, ok := m.objects[e.Hash]
			if !ok {
				return fmt.Errorf("object %s (%s): %w", e.Hash, e.Name, fs.ErrNotExist)
			}
			set[e.Hash] = b
		}
	}
	return nil
}

func (m *Remote) commit(h tree.Hash) (gitobj.CommitData, error) {
	o, ok := m.objects[h]
	if !ok || o.Type != gitobj.Commit {
		return gitobj.CommitData{}, fmt.Errorf("commit %s: %w", h, fs.ErrNotExist)
	}
	if c, ok := m.parsed[h]; ok {
		return c, nil
	}
	c, err := gitobj.ParseCommit(o.Data)
	if err == nil {
		c.Parents = slices.Clip(c.Parents) // shared
		m.parsed[h] = c
	}
	return c, err
}

// Push implements gitrepo.Remote.
func (m *Remote) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	apply, ferr := m.fault(ctx, Push, cmds)
	if !apply {
		return ferr
	}
	set, err := gitobj.ReadPack(bytes.NewReader(pack), 0)
	if err != nil {
		return errors.Join(ferr, &gitrepo.Rejection{Words: "unpack: " + err.Error()})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.receive(cmds, set); err != nil {
		return errors.Join(ferr, &gitrepo.Rejection{Words: err.Error()})
	}
	return ferr
}

// receive updates all refs or none.
func (m *Remote) receive(cmds []gitrepo.Command, set gitobj.Set) error {
	var added []tree.Hash
	for h, o := range set {
		if _, ok := m.objects[h]; !ok {
			m.objects[h] = o
			added = append(added, h)
		}
	}
	for _, c := range cmds {
		err := m.named(c)
		if err == nil {
			err = m.admit(c, added)
		}
		if err != nil {
			for _, h := range added {
				delete(m.objects, h)
			}
			return fmt.Errorf("%s: %w", c.Ref, err)
		}
	}
	for _, c := range cmds {
		if c.New.IsZero() {
			delete(m.refs, c.Ref)
			continue
		}
		m.refs[c.Ref] = c.New
	}
	return nil
}

// named refuses a ref where another is a directory of it or below it, as git does
// also when the same push deletes the other.
func (m *Remote) named(c gitrepo.Command) error {
	if c.New.IsZero() || !c.Old.IsZero() {
		return nil
	}
	for ref := range m.refs {
		if strings.HasPrefix(ref, c.Ref+"/") || strings.HasPrefix(c.Ref, ref+"/") {
			return fmt.Errorf("cannot lock ref: %s exists", ref)
		}
	}
	return nil
}

func (m *Remote) admit(c gitrepo.Command, added []tree.Hash) error {
	if m.refs[c.Ref] != c.Old {
		return fmt.Errorf("is at %s but expected %s", m.refs[c.Ref].Short(), c.Old.Short())
	}
	if c.New.IsZero() {
		return nil
	}
	// The branch of offers is the daemon's alone and replaced by compare-and-swap;
	// no other may lose a commit.
	if strings.HasPrefix(c.Ref, "refs/heads/") && c.Ref != gitrepo.Branch(gitrepo.OfferBranch) && !c.Old.IsZero() && !m.reaches(c.New, c.Old) {
		return errors.New("non-fast-forward")
	}
	isNew := map[tree.Hash]bool{}
	for _, h := range added {
		isNew[h] = true
	}
	if err := m.connected(c.New, isNew); err != nil {
		return fmt.Errorf("missing necessary objects: %w", err)
	}
	if m.Hook == nil {
		return nil
	}
	paths, err := m.changed(c.Old, c.New)
	if err != nil {
		return err
	}
	return m.Hook(c.Ref, paths)
}

func (m *Remote) reaches(from, to tree.Hash) bool {
	seen := map[tree.Hash]bool{}
	for queue := []tree.Hash{from}; len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if h == to {
			return true
		}
		if seen[h] {
			continue
		}
		seen[h] = true
		if c, err := m.commit(h); err == nil {
			queue = append(queue, c.Parents...)
		}
	}
	return false
}

// connected checks that what hangs below new objects is here, and strikes off
// those it has seen. Objects that were here before are whole.
func (m *Remote) connected(h tree.Hash, isNew map[tree.Hash]bool) error {
	o, ok := m.objects[h]
	if !ok {
		return fmt.Errorf("object %s: %w", h, fs.ErrNotExist)
	}
	if !isNew[h] {
		return nil
	}
	isNew[h] = false
	var below []tree.Hash
	switch o.Type {
	case gitobj.Commit:
		c, err := gitobj.ParseCommit(o.Data)
		if err != nil {
			return err
		}
		below = append(c.Parents, c.Tree)
	case gitobj.Tree:
		entries, err := gitobj.StoredDir(o.Data)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Kind != tree.Submodule {
				below = append(below, e.Hash)
			}
		}
	}
	for _, b := range below {
		if err := m.connected(b, isNew); err != nil {
			return err
		}
	}
	return nil
}

func (m *Remote) changed(old, new tree.Hash) ([]string, error) {
	var a, b tree.Tree
	for _, f := range []struct {
		h  tree.Hash
		to *tree.Tree
	}{{old, &a}, {new, &b}} {
		if f.h.IsZero() {
			continue
		}
		c, err := m.commit(f.h)
		if err != nil {
			return nil, err
		}
		*f.to = tree.Tree{Store: stored{unlocked{m}}, Root: c.Tree}
	}
	var paths []string
	err := tree.Diff(a, b, func(p string, _, _ tree.Entry) error {
		paths = append(paths, p)
		return nil
	})
	return paths, err
}
