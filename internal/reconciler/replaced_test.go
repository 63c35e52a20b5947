package reconciler

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// replaced are the objects of a tree in which an entry that is no directory stands
// at a path, whatever stood there.
func replaced(t *testing.T, base tree.Tree, at string, kind tree.Kind, set gitobj.Set) tree.Hash {
	t.Helper()
	entries, err := base.Entries()
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.Clone(entries)
	top, rest, below := strings.Cut(at, "/")
	i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == top })
	if i < 0 {
		entries, i = append(entries, tree.Entry{Name: top}), len(entries)
	}
	if below {
		sub := tree.Tree{}
		if entries[i].Kind == tree.Dir {
			sub = tree.Tree{Store: base.Store, Root: entries[i].Hash}
		}
		entries[i].Hash, entries[i].Kind = replaced(t, sub, rest, kind, set), tree.Dir
	} else {
		entries[i].Kind = kind
		if entries[i].Hash = set.Add(gitobj.Blob, []byte("elsewhere")); kind == tree.Submodule {
			entries[i].Hash = tree.Hash{1, 2, 3} // a commit that the repository does not have
		}
	}
	tree.Sort(entries)
	return set.Add(gitobj.Tree, tree.EncodeDir(entries))
}

var links = map[string]tree.Kind{"file": tree.File, "symlink": tree.Symlink, "submodule": tree.Submodule}

// TestReplacedDirectoryIsUndone: a commit of another account that puts a file, a
// link or a submodule where the ledger has a directory is undone and stops no round.
func TestReplacedDirectoryIsUndone(t *testing.T) {
	for _, branch := range []string{"ledger", "main"} {
		for _, at := range []string{
			"contracts", "contracts/vision", "contracts/vision/SHARD", "contracts/vision/SHARD/train",
			"manifests", "manifests/rome", "manifests/rome/namespaces", "requests", "requests/vision",
		} {
			for name, kind := range links {
				t.Run(branch+"/"+at+"/"+name, func(t *testing.T) {
					s := newStory(t, branch)
					s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
					s.rest()
					whole, told := s.tree(branch), s.clusters.told
					shard := ""
					if err := whole.Walk(func(p string, _ tree.Entry) error {
						if parts := strings.Split(p, "/"); len(parts) == 5 && parts[0] == "contracts" {
							shard = parts[2]
						}
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					path := strings.Replace(at, "SHARD", shard, 1)
					set := gitobj.Set{}
					bad, err := s.remote.CommitTree(branch, eve, "A typo", set, replaced(t, whole, path, kind, set), nil)
					if err != nil {
						t.Fatal(err)
					}
					got := s.rest()
					if len(got) != 1 || !strings.HasPrefix(got[0], "undo edits of generated files by Eve <eve@example.org> in "+bad.Short()) {
						t.Errorf("committed %q, want one commit that names %s", got, bad.Short())
					}
					if now := s.tree(branch); now.Root != whole.Root {
						t.Error("the ledger is not what it was before")
					}
					if s.clusters.told != told {
						t.Error("delivery was told of something new")
					}
					// After a restart without any memory too.
					s.start()
					s.expect(s.rest())
				})
			}
		}
	}
}

// TestReplacedDirectoryAtAStart: a daemon without any memory goes by the newest
// commit of its own, and undoes what came after it too.
func TestReplacedDirectoryAtAStart(t *testing.T) {
	for name, kind := range links {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, "ledger")
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.rest()
			whole := s.tree("ledger")
			set := gitobj.Set{}
			bad, err := s.remote.CommitTree("ledger", eve, "A typo", set, replaced(t, whole, "contracts", kind, set), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.start()
			got := s.rest()
			if len(got) != 1 || !strings.Contains(got[0], bad.Short()) || s.tree("ledger").Root != whole.Root {
				t.Errorf("committed %q", got)
			}
		})
	}
}
