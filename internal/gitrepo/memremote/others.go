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

// CommitTree adds a commit of any tree to a branch, whatever git would say of
// it: the objects are kept as they are. A nil signer does not sign.
func (m *Remote) CommitTree(branch string, who gitobj.Person, message string, objects gitobj.Set, root tree.Hash, signer gitrepo.Signer, others ...tree.Hash) (tree.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := gitrepo.Branch(branch)
	c := gitobj.CommitData{Tree: root, Author: who, Committer: who, Message: message}
	if head := m.refs[ref]; !head.IsZero() {
		c.Parents = []tree.Hash{head}
	}
	c.Parents = append(c.Parents, others...)
	h, err := m.keep(c, objects, signer)
	if err == nil {
		m.refs[ref] = h
	}
	return h, err
}

// keep stores a commit and what it brings.
func (m *Remote) keep(c gitobj.CommitData, objects gitobj.Set, signer gitrepo.Signer) (h tree.Hash, err error) {
	if signer != nil {
		if c.Signature, err = signer.Sign(c.Payload()); err != nil {
			return h, err
		}
	}
	maps.Copy(m.objects, objects)
	o := gitobj.Object{Type: gitobj.Commit, Data: c.Encode()}
	m.objects[o.Hash()] = o
	return o.Hash(), nil
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
	return m.keep(c, set, signer)
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
func (m *Remote) Log(branch string) ([]Logged, error) { return m.LogSince(branch, tree.Hash{}) }

// LogSince is the part of Log that is newer than a commit: all of it where the
// commit is not there.
func (m *Remote) LogSince(branch string, since tree.Hash) ([]Logged, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Logged
	for h := m.refs[gitrepo.Branch(branch)]; !h.IsZero() && h != since; {
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

// Size implements tree.Sizer.
func (s unlocked) Size(h tree.Hash) (int64, error) {
	o, ok := s.m.objects[h]
	switch {
	case !ok:
		return 0, fmt.Errorf("file %s: %w", h, fs.ErrNotExist)
	case o.Type != gitobj.Blob:
		return 0, &tree.BrokenError{Why: fmt.Sprintf("what stands as a file is a %s (%s)", o.Type, h.Short())}
	}
	return int64(len(o.Data)), nil
}

// stored lists what is kept, whatever git would say of it.
type stored struct{ unlocked }

func (s stored) Dir(h tree.Hash) ([]tree.Entry, error) {
	o, ok := s.m.objects[h]
	if !ok || o.Type != gitobj.Tree {
		return nil, fmt.Errorf("directory %s: %w", h, fs.ErrNotExist)
	}
	return gitobj.StoredDir(o.Data)
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

// Size implements tree.Sizer.
func (s locked) Size(h tree.Hash) (int64, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return unlocked(s).Size(h)
}

// Edited stores a tree with a change and returns its root.
func (m *Remote) Edited(base tree.Tree, change gitobj.Change) (tree.Hash, error) {
	set := gitobj.Set{}
	root, err := gitobj.Edit(base, change, set)
	if err != nil {
		return tree.Hash{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.objects, set)
	return root, nil
}

// Signed stores a commit that no branch has, signed, and returns its signature
// with it.
func (m *Remote) Signed(c gitobj.CommitData, signer gitrepo.Signer) (h tree.Hash, signature string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Signature, err = signer.Sign(c.Payload()); err == nil {
		h, err = m.keep(c, gitobj.Set{}, nil)
	}
	return h, c.Signature, err
}

// Side stores a commit that no branch has.
func (m *Remote) Side(who gitobj.Person, message string, root tree.Hash, parents ...tree.Hash) (tree.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keep(gitobj.CommitData{Tree: root, Parents: parents, Author: who, Committer: who, Message: message}, gitobj.Set{}, nil)
}
