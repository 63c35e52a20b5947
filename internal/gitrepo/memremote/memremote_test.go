package memremote_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

var ada = gitobj.Person{Name: "Ada", Email: "ada@example.org", When: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}

func put(path, content string) gitobj.Change {
	return gitobj.Change{Puts: map[string][]byte{path: []byte(content)}}
}

// built makes a commit's objects, of which some can be left out.
func built(t *testing.T, parent tree.Hash, path string) (set gitobj.Set, commit, root tree.Hash) {
	t.Helper()
	set = gitobj.Set{}
	root, err := gitobj.Edit(tree.Tree{}, put(path, "x"), set)
	if err != nil {
		t.Fatal(err)
	}
	c := gitobj.CommitData{Tree: root, Author: ada, Committer: ada, Message: "x\n"}
	if !parent.IsZero() {
		c.Parents = []tree.Hash{parent}
	}
	return set, set.Add(gitobj.Commit, c.Encode()), root
}

// The twin must refuse what a real server refuses.
func TestPushRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(m *memremote.Remote)
		old     func(head tree.Hash) tree.Hash
		parent  func(head tree.Hash) tree.Hash
		without bool // leave the tree out of the pack
		words   string
	}{
		"a stale old value":  {old: func(tree.Hash) tree.Hash { return tree.Hash{1} }, words: "expected"},
		"creating what is":   {old: func(tree.Hash) tree.Hash { return tree.Hash{} }, words: "expected"},
		"going sideways":     {parent: func(tree.Hash) tree.Hash { return tree.Hash{} }, words: "non-fast-forward"},
		"an incomplete pack": {without: true, words: "missing necessary objects"},
		"an unknown parent":  {parent: func(tree.Hash) tree.Hash { return tree.Hash{9} }, words: "non-fast-forward"},
		"what a hook forbids": {prepare: func(m *memremote.Remote) {
			m.Hook = func(ref string, paths []string) error { return errors.New(ref + " " + strings.Join(paths, " ")) }
		}, words: "refs/heads/main contracts/b"},
	} {
		t.Run(name, func(t *testing.T) {
			m := memremote.New()
			head, err := m.Commit("main", ada, "x\n", put("a", "1"))
			if err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(m)
			}
			old, parent := head, head
			if c.old != nil {
				old = c.old(head)
			}
			if c.parent != nil {
				parent = c.parent(head)
			}
			set, commit, root := built(t, parent, "contracts/b")
			if c.without {
				delete(set, root)
			}
			pack, err := set.Pack()
			if err != nil {
				t.Fatal(err)
			}
			cmds := []gitrepo.Command{{Ref: "refs/heads/new", New: head}, {Ref: "refs/heads/main", Old: old, New: commit}}
			if name == "what a hook forbids" {
				cmds = cmds[1:]
				c.words = "refs/heads/main a contracts/b"
			}
			err = m.Push(t.Context(), cmds, pack)
			var no *gitrepo.Rejection
			if !errors.As(err, &no) || !strings.Contains(no.Words, c.words) {
				t.Errorf("got %v, want a rejection with %q", err, c.words)
			}
			if refs := m.AllRefs(); len(refs) != 1 || refs["refs/heads/main"] != head {
				t.Errorf("the refs moved: %v", refs)
			}
			if err := m.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBothKindsOfFault(t *testing.T) {
	for _, apply := range []bool{false, true} {
		m := memremote.New()
		fault := errors.New("line is dead")
		m.Fault = func(memremote.Op) (bool, error) { return apply, fault }
		set, commit, _ := built(t, tree.Hash{}, "a")
		pack, err := set.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/main", New: commit}}, pack); !errors.Is(err, fault) {
			t.Errorf("Push: got %v", err)
		}
		if got := m.Head("main") == commit; got != apply {
			t.Errorf("persisted: got %v, want %v", got, apply)
		}
		if _, err := m.Refs(t.Context()); !errors.Is(err, fault) {
			t.Errorf("Refs: got %v", err)
		}
	}
}

func TestCheckFindsWhatIsMissing(t *testing.T) {
	m := memremote.New()
	m.SetRef("refs/heads/main", tree.Hash{7})
	if err := m.Check(); err == nil {
		t.Error("a ref to nothing passes")
	}
}
