package gitobj_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// FuzzDecodeDir: whatever bytes, a directory is refused by name, or each of its
// names is one path element that stands once, in order, and finding each name
// gives the entry that listing gives.
func FuzzDecodeDir(f *testing.F) {
	h := tree.BlobHash(nil)
	for _, n := range []string{"a", "..", ".git", "a/b", "g\u200cit"} {
		f.Add(rawDir(rawEntry{"100644", n, h}, rawEntry{"40000", n + "x", h}))
	}
	f.Add(rawDir(rawEntry{"100664", "a", h}, rawEntry{"100644", "a.b", h}, rawEntry{"040000", "a", h}))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := gitobj.DecodeDir(data)
		if err != nil {
			if broken := new(tree.BrokenError); !errors.As(err, &broken) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("refused with %q", err)
			}
			return
		}
		m := tree.NewMemory()
		root := tree.Tree{Store: listed{m, h, entries}, Root: h}
		for i, e := range entries {
			if e.Name == "" || path.Clean("x/"+e.Name) != "x/"+e.Name || strings.Contains(e.Name, "/") || e.Hash.IsZero() {
				t.Fatalf("entry %q got through", e.Name)
			}
			if got, err := root.Find(e.Name); err != nil || got != e {
				t.Fatalf("%q: found %+v, %v, listed %+v", e.Name, got, err, e)
			}
			if i > 0 && entries[i-1].Name == e.Name {
				t.Fatalf("%q stands twice", e.Name)
			}
		}
		sorted := append([]tree.Entry{}, entries...)
		tree.Sort(sorted)
		if again, err := gitobj.DecodeDir(tree.EncodeDir(sorted)); err != nil || len(again) != len(entries) {
			t.Fatalf("written again it is refused: %v", err)
		}
	})
}

// listed is a store of one directory.
type listed struct {
	tree.Store
	root    tree.Hash
	entries []tree.Entry
}

func (l listed) Dir(h tree.Hash) ([]tree.Entry, error) {
	if h == l.root {
		return l.entries, nil
	}
	return l.Store.Dir(h)
}

// FuzzParseCommit: whatever bytes, a commit has the tree and the parents that
// git finds in it, or both refuse it.
func FuzzParseCommit(f *testing.F) {
	h := tree.DirHash(nil).String()
	for _, rest := range []string{"", "\n", "\n\nmessage", "\nparent " + h + "\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nx\n", "\nauthor A <a> 1\nparent " + h + "\n\n", "\nparent " + h} {
		f.Add([]byte("tree " + h + rest))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := gitobj.ParseCommit(raw)
		if err != nil {
			return
		}
		_ = gitobj.SignedPayload(raw)
		_ = gitobj.Trailers(c.Message, "Plan")
		again, err := gitobj.ParseCommit(c.Encode())
		if err != nil || again.Tree != c.Tree || len(again.Parents) != len(c.Parents) || !again.Committer.When.Equal(c.Committer.When) {
			t.Fatalf("encoded again: got %+v, %v, want %+v", again, err, c)
		}
		// The bytes themselves must begin so.
		var head bytes.Buffer
		head.WriteString("tree " + c.Tree.String() + "\n")
		for _, p := range c.Parents {
			head.WriteString("parent " + p.String() + "\n")
		}
		if n := head.Len(); len(raw) < n-1 || !bytes.EqualFold(raw[:n-1], head.Bytes()[:n-1]) {
			t.Fatalf("%q does not begin with %q", raw, head.Bytes())
		}
	})
}

// TestParentsAreThoseOfGit: a commit whose parents git sees otherwise than we do
// has a history that no server has checked.
func TestParentsAreThoseOfGit(t *testing.T) {
	dir := t.TempDir()
	run := func(stdin []byte, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run(nil, "init", "-q", "--bare", ".")
	root := run(nil, "hash-object", "-w", "-t", "tree", "--stdin")
	people := "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	first := run([]byte("tree "+root+"\n"+people+"\nfirst\n"), "hash-object", "-w", "-t", "commit", "--stdin")
	for _, raw := range []string{
		"tree " + root + "\nparent " + first + "\n" + people + "\nx\n",
		"tree " + root + "\n" + people + "parent " + first + "\n\nx\n",
		"tree " + root + "\nparent " + first + "\nparent " + first + "\n" + people + "\nx\n",
		"tree " + root + "\n" + people + "\nparent " + first + "\n",
	} {
		h := run([]byte(raw), "hash-object", "-w", "-t", "commit", "--stdin", "--literally")
		want := strings.Fields(run(nil, "rev-list", "--parents", "-n1", h))[1:]
		c, err := gitobj.ParseCommit([]byte(raw))
		if err != nil || len(c.Parents) > 0 && c.Parents[0].String() != first {
			t.Fatalf("%q: %+v, %v", raw, c, err)
		}
		// rev-list lists equal parents once.
		if got := len(c.Parents) > 0; got != (len(want) > 0) {
			t.Errorf("%q: got parents %v, git has %v", raw, c.Parents, want)
		}
	}
}
