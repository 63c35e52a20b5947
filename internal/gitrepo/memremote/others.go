package memremote

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// What other people do to the repository, and what a checker reads of it. None
// of these meets faults or hooks.

// Commit adds a commit to a branch, as a team's merge does, and returns it.
func (m *Remote) Commit(branch string, who gitobj.Person, message string, change gitobj.Change) (tree.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := gitrepo.Branch(branch)
	h, err := m.build(m.refs[ref], who, message, change, nil)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("commit to %s: %w", branch, err)
	}
	m.refs[ref] = h
	return h, nil
}

// Merge is Commit by somebody who signs it (nil: not) and merges other commits
// with it. The tree is the branch's with the change.
func (m *Remote) Merge(branch string, who gitobj.Person, message string, change gitobj.Change, signer gitrepo.Signer, others ...tree.Hash) (tree.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := gitrepo.Branch(branch)
	h, err := m.build(m.refs[ref], who, message, change, signer, others...)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("commit to %s: %w", branch, err)
	}
	m.refs[ref] = h
	return h, nil
}

// Rewrite puts a branch on a new commit made on any parent (zero: none), as a
// force push does.
func (m *Remote) Rewrite(branch string, parent tree.Hash, who gitobj.Person, message string, change gitobj.Change) (tree.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.build(parent, who, message, change, nil)
	if err != nil {
		return tree.Hash{}, fmt.Errorf("rewrite %s: %w", branch, err)
	}
	m.refs[gitrepo.Branch(branch)] = h
	return h, nil
}

// SetRef puts a ref anywhere; a zero hash deletes it.
func (m *Remote) SetRef(ref string, h tree.Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.IsZero() {
		delete(m.refs, ref)
		return
	}
	m.refs[ref] = h
}

func (m *Remote) build(parent tree.Hash, who gitobj.Person, message string, change gitobj.Change, signer gitrepo.Signer, others ...tree.Hash) (tree.Hash, error) {
	base := tree.Tree{}
	var parents []tree.Hash
	if !parent.IsZero() {
		c, err := m.commit(parent)
		if err != nil {
			return tree.Hash{}, err
		}
		base = tree.Tree{Store: unlocked{m}, Root: c.Tree}
		parents = []tree.Hash{parent}
	}
	set := gitobj.Set{}
	root, err := gitobj.Edit(base, change, set)
	if err != nil {
		return tree.Hash{}, err
	}
	c := gitobj.CommitData{Tree: root, Parents: append(parents, others...), Author: who, Committer: who, Message: message}
	if signer != nil {
		if c.Signature, err = signer.Sign(c.Payload()); err != nil {
			return tree.Hash{}, err
		}
	}
	h := set.Add(gitobj.Commit, c.Encode())
	maps.Copy(m.objects, set)
	return h, nil
}

// Head is a branch's commit; zero: there is none.
func (m *Remote) Head(branch string) tree.Hash {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refs[gitrepo.Branch(branch)]
}

// AllRefs are the refs as they are.
func (m *Remote) AllRefs() map[string]tree.Hash {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.refs)
}

// Tree is a commit's tree.
func (m *Remote) Tree(commit tree.Hash) (tree.Tree, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.commit(commit)
	return tree.Tree{Store: locked{m}, Root: c.Tree}, err
}

// Objects reads everything that the remote holds, as an auditor does. It is safe
// for concurrent use.
func (m *Remote) Objects() Objects { return Objects{locked{m}} }

// Objects are a remote's.
type Objects struct{ locked }

// Commit is a commit's body as it is stored.
func (o Objects) Commit(h tree.Hash) ([]byte, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	c, ok := o.m.objects[h]
	if !ok || c.Type != gitobj.Commit {
		return nil, fmt.Errorf("commit %s: %w", h, fs.ErrNotExist)
	}
	return c.Data, nil
}

// Logged is a commit of Log.
type Logged struct {
	Hash tree.Hash
	gitobj.CommitData
}

// Log is a branch's history by first parents, newest first.
func (m *Remote) Log(branch string) ([]Logged, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Logged
	for h := m.refs[gitrepo.Branch(branch)]; !h.IsZero(); {
		c, err := m.commit(h)
		if err != nil {
			return nil, err
		}
		out = append(out, Logged{h, c})
		if len(c.Parents) == 0 {
			break
		}
		h = c.Parents[0]
	}
	return out, nil
}

// Check reports the first object that a ref needs and that is not there, or
// that is not what its name says.
func (m *Remote) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[tree.Hash]bool{}
	for h, o := range m.objects {
		if o.Hash() != h {
			return fmt.Errorf("object %s holds something else", h)
		}
		all[h] = true
	}
	for _, ref := range slices.Sorted(maps.Keys(m.refs)) {
		if err := m.connected(m.refs[ref], all); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
	}
	return nil
}

// unlocked reads objects for those who hold the lock, locked for the others.
type unlocked struct{ m *Remote }

func (s unlocked) Dir(h tree.Hash) ([]tree.Entry, error) {
	o, ok := s.m.objects[h]
	if !ok || o.Type != gitobj.Tree {
		return nil, fmt.Errorf("directory %s: %w", h, fs.ErrNotExist)
	}
	return gitobj.DecodeDir(o.Data)
}

func (s unlocked) File(h tree.Hash, limit int64) ([]byte, error) {
	o, ok := s.m.objects[h]
	if !ok || o.Type != gitobj.Blob {
		return nil, fmt.Errorf("file %s: %w", h, fs.ErrNotExist)
	}
	if limit > 0 && int64(len(o.Data)) > limit {
		return nil, tree.ErrTooLarge
	}
	return o.Data, nil
}

type locked struct{ m *Remote }

func (s locked) Dir(h tree.Hash) ([]tree.Entry, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return unlocked(s).Dir(h)
}

func (s locked) File(h tree.Hash, limit int64) ([]byte, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return unlocked(s).File(h, limit)
}
