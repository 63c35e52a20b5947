package audit_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// TestReplacedDirectoriesAreForeign: where others put a file or a link in the place
// of a generated directory, or of intents, the history is read on: the edit is
// named, and the daemon's commit that undoes it is none.
func TestReplacedDirectoriesAreForeign(t *testing.T) {
	for name, kind := range map[string]tree.Kind{"file": tree.File, "symlink": tree.Symlink, "submodule": tree.Submodule} {
		for _, dir := range []string{"contracts", "manifests", "requests", "intents"} {
			t.Run(dir+"/"+name, func(t *testing.T) {
				s := lived(t, "ledger", nil, "")
				branch := "ledger"
				if dir == "intents" {
					branch = "main"
				}
				bad := s.replace(t, branch, dir, kind)
				s.At = s.At.Add(time.Minute)
				s.Rest()
				rep := s.verify()
				if branch == "main" {
					if len(rep.Violations) != 0 {
						t.Errorf("got %v, want none", rep.Violations)
					}
					return
				}
				if len(rep.Violations) == 0 {
					t.Fatal("nothing was found")
				}
				for _, v := range rep.Violations {
					if v.Commit != bad.String() {
						t.Errorf("got %s, want those of %s alone", v, bad.Short())
					}
				}
			})
		}
	}
}

// replace commits a tree in which something else stands where a directory was.
func (s *fleet) replace(t *testing.T, branch, dir string, kind tree.Kind) tree.Hash {
	t.Helper()
	root, err := s.Remote.Tree(s.Remote.Head(branch))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := root.Entries()
	if err != nil {
		t.Fatal(err)
	}
	set := gitobj.Set{}
	other := tree.Entry{Name: dir, Kind: kind, Hash: set.Add(gitobj.Blob, []byte("elsewhere"))}
	if kind == tree.Submodule {
		other.Hash = tree.Hash{1, 2, 3} // a commit that is not here
	}
	var list []tree.Entry
	for _, e := range entries {
		if e.Name != dir {
			list = append(list, e)
		}
	}
	list = append(list, other)
	tree.Sort(list)
	who := gitobj.Person{Name: "Eve", Email: "eve@example.org", When: s.At}
	h, err := s.Remote.CommitTree(branch, who, "A typo", set, set.Add(gitobj.Tree, tree.EncodeDir(list)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
