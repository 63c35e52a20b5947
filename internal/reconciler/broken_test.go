package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

var eve = gitobj.Person{Name: "Eve", Email: "eve@example.org", When: ada.When}

// spoiled are the objects of a tree that has entries more in a directory than
// git lets it have.
func spoiled(t *testing.T, base tree.Tree, dir string, set gitobj.Set, extra ...tree.Entry) tree.Hash {
	t.Helper()
	entries, err := base.Entries()
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.Clone(entries)
	if dir == "" {
		entries = append(entries, extra...)
	} else {
		top, rest, _ := strings.Cut(dir, "/")
		i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == top })
		if i < 0 {
			t.Fatalf("there is no %s", top)
		}
		entries[i].Hash = spoiled(t, tree.Tree{Store: base.Store, Root: entries[i].Hash}, rest, set, extra...)
	}
	tree.Sort(entries)
	return set.Add(gitobj.Tree, tree.EncodeDir(entries))
}

// files are the top-level entries of a tree of these files, whose objects go to
// the set.
func files(t *testing.T, set gitobj.Set, list map[string]string) []tree.Entry {
	t.Helper()
	puts := map[string][]byte{}
	for name, text := range list {
		puts[name] = []byte(text)
	}
	root, err := gitobj.Edit(tree.Tree{}, gitobj.Change{Puts: puts}, set)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := gitobj.DecodeDir(set[root].Data)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// bombIn is a directory of levels, ten of the next in each.
func bombIn(set gitobj.Set, levels int) tree.Hash {
	h := set.Add(gitobj.Tree, tree.EncodeDir([]tree.Entry{{Name: "x.yaml", Kind: tree.File, Hash: set.Add(gitobj.Blob, []byte(intentOf("x", "1")))}}))
	for range levels {
		var entries []tree.Entry
		for i := range 10 {
			entries = append(entries, tree.Entry{Name: "d" + strconv.Itoa(i), Kind: tree.Dir, Hash: h})
		}
		h = set.Add(gitobj.Tree, tree.EncodeDir(entries))
	}
	return h
}

// spoilers are trees that say nothing, of inputs and of a ledger.
var spoilers = map[string]func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash{
	"everything twice in the root": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, "", set, files(t, set, map[string]string{
			"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
				"  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n  verification: {mode: none}\n",
			"tenants/vision.yaml":      ground,
			"intents/vision/evil.yaml": intentOf("evil", "8"), "manifests/rome/evil.yaml": evil,
		})...)
	},
	"a slash in a name": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "sub/evil.yaml", Hash: set.Add(gitobj.Blob, []byte(evil))})
	},
	"another directory's file": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "../vision/evil.yaml", Hash: set.Add(gitobj.Blob, []byte(evil))})
	},
	"a name twice": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		list, err := base.Sub(dir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := list.Entries()
		if err != nil {
			t.Fatal(err)
		}
		return spoiled(t, base, dir, set, tree.Entry{Name: entries[0].Name, Hash: set.Add(gitobj.Blob, []byte(evil))})
	},
	"a file that is a directory": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "evil.yaml", Hash: bombIn(set, 0)})
	},
	"a directory that is a file": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "evil", Kind: tree.Dir, Hash: set.Add(gitobj.Blob, []byte(evil))})
	},
	"a bomb": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "bomb", Kind: tree.Dir, Hash: bombIn(set, 25)})
	},
	"a small bomb": func(t *testing.T, base tree.Tree, dir string, set gitobj.Set) tree.Hash {
		return spoiled(t, base, dir, set, tree.Entry{Name: "bomb", Kind: tree.Dir, Hash: bombIn(set, 6)})
	},
}

const evil = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {pod-security.kubernetes.io/enforce: privileged}}\n"

func (s *story) tree(branch string) tree.Tree {
	s.t.Helper()
	t, err := s.remote.Tree(s.remote.Head(branch))
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// over commits files over a tree, on whatever the branch stands at.
func (s *story) over(base tree.Tree, by gitrepo.Signer, list map[string]string) tree.Hash {
	s.t.Helper()
	set, puts := gitobj.Set{}, map[string][]byte{}
	for name, text := range list {
		puts[name] = []byte(text)
	}
	root, err := gitobj.Edit(base, gitobj.Change{Puts: puts}, set)
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := s.remote.CommitTree("main", ada, "Ask", set, root, by)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// TestBrokenInputsSayNothing: three ways to have two readings of a tree, and
// bombs, in fleets that ask for signatures and in others.
func TestBrokenInputsSayNothing(t *testing.T) {
	for name, spoil := range spoilers {
		for _, signed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/signed", false: "/unsigned"}[signed], func(t *testing.T) {
				s, _, adas := signedStory(t, "ledger")
				if !signed {
					s, adas = newStory(t, "ledger"), nil
					s.push(map[string]string{"intents/vision/base.yaml": intentOf("base", "1")})
					s.rest()
				}
				whole, accepted := s.tree("main"), s.remote.Head("main")
				was := maps.Clone(s.r.View().Fleet.Tenants)
				set := gitobj.Set{}
				dir := "intents/vision"
				if strings.HasSuffix(name, "bomb") {
					dir = "flavors/paris" // in its own directory it stops one tenant alone
				}
				bad, err := s.remote.CommitTree("main", eve, "A typo", set, spoil(t, whole, dir, set), nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time without any memory
					s.expect(s.rest())
					v := s.r.View()
					if err := s.r.Ready(); v.Fleet == nil || v.Trouble != "" || err != nil && !strings.HasPrefix(err.Error(), "deaf") {
						t.Fatalf("stopped: %q, %v", v.Trouble, err)
					}
					if !slices.ContainsFunc(v.Fleet.Intents, func(i *model.Intent) bool { return i.Metadata.Name == "base" }) || len(v.Fleet.Intents) != 1 || len(v.Fleet.Tenants) != len(was) {
						t.Errorf("acted on: %d intents", len(v.Fleet.Intents))
					}
					if v.Verified.Signed != signed || v.Verified.Clean != accepted || v.Verified.Said != accepted {
						t.Errorf("got %+v, want what stood at %s", v.Verified, accepted.Short())
					}
					problem := ""
					for _, d := range v.Fleet.Diagnostics {
						if d.Code == verify.CodeBroken {
							problem = d.String()
						}
					}
					for _, want := range []string{bad.Short(), "Eve <eve@example.org>", "broken", accepted.Short() + " stays in force"} {
						if !strings.Contains(problem, want) {
							t.Errorf("the problem does not say %q: %s", want, problem)
						}
					}
					s.start()
				}
				// The first later commit that is whole is judged against what was accepted.
				if signed {
					s.over(whole, nil, map[string]string{"intents/vision/train.yaml": intentOf("train", "8")})
					s.expect(s.rest())
				}
				s.over(whole, adas, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
				s.expect(s.rest(), placed, peering)
				for _, d := range s.r.View().Fleet.Diagnostics {
					if d.Code == verify.CodeBroken {
						t.Errorf("still told: %s", d)
					}
				}
			})
		}
	}
}

// Where the first commit of all has such a tree, nothing stands that could stay in
// force: the daemon waits, names the commit, the directory and its fault, and goes on
// with the first commit that is whole.
func TestFirstCommitThatSaysNothing(t *testing.T) {
	for name, spoil := range spoilers {
		for _, rooted := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/rooted", false: "/unsigned"}[rooted], func(t *testing.T) {
				s := newStory(t, "ledger")
				whole := s.tree("main")
				s.remote.SetRef("refs/heads/base", s.remote.Head("main"))
				s.remote.SetRef("refs/heads/main", tree.Hash{})
				var grace gitrepo.Signer
				if rooted {
					grace, _ = memremote.KeyPair(t, "p")
					s.signer, _ = memremote.KeyPair(t, "d")
					s.root = rootOf(t, "")
				}
				set := gitobj.Set{}
				bad, err := s.remote.CommitTree("main", eve, "Begin", set, spoil(t, whole, "flavors/paris", set), grace)
				if err != nil {
					t.Fatal(err)
				}
				s.start()
				_, err = s.r.Round(t.Context())
				if err == nil {
					t.Fatal("acted on")
				}
				for _, want := range []string{"no version of fleet.yaml can be read", "commit " + bad.Short() + " by Eve <eve@example.org>", "its tree is broken: ", "nothing is in force. Push a commit"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("it does not say %q: %v", want, err)
					}
				}
				if name == "a slash in a name" && !strings.Contains(err.Error(), ": flavors/paris:1:1: ") {
					t.Errorf("it does not name the directory: %v", err)
				}
				s.over(whole, grace, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
				s.expect(s.rest(), placed, peering)
			})
		}
	}
}

// TestBrokenLedgerIsUndone: delivery never reads what git refuses, and the next
// commit of ours names it.
func TestBrokenLedgerIsUndone(t *testing.T) {
	for name, spoil := range spoilers {
		for _, branch := range []string{"ledger", "main"} {
			t.Run(name+"/"+branch, func(t *testing.T) {
				s := newStory(t, branch)
				s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
				s.rest()
				whole, told := s.tree(branch), s.clusters.told
				set := gitobj.Set{}
				bad, err := s.remote.CommitTree(branch, eve, "A typo", set, spoil(t, whole, "manifests/rome", set), nil)
				if err != nil {
					t.Fatal(err)
				}
				got := s.rest()
				if len(got) != 1 || !strings.HasPrefix(got[0], "undo commit "+bad.Short()+" by Eve <eve@example.org>, whose tree is broken: ") {
					t.Errorf("committed %q, want one commit that names %s", got, bad.Short())
				}
				if now := s.tree(branch); now.Root != whole.Root {
					t.Errorf("the ledger is not what it was before")
				}
				if s.clusters.told != told {
					t.Errorf("delivery was told of something new")
				}
				s.expect(s.rest())
				s.lines.Wants(t, "FB1121")
				// After a restart without any memory too.
				s.start()
				s.expect(s.rest())
			})
		}
	}
}

// TestMergeOfTooManyOnTheLedgerIsUndone: a merge that says nothing because it has too
// many parents leaves the files as they are. The commit that undoes it changes none of
// them, and the round after it decides.
func TestMergeOfTooManyOnTheLedgerIsUndone(t *testing.T) {
	for _, branch := range []string{"ledger", "main"} {
		t.Run(branch, func(t *testing.T) {
			s := newStory(t, branch)
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.rest()
			whole := s.tree(branch)
			var sides []tree.Hash
			for i := range tree.MaxParents {
				side, err := s.remote.Side(eve, fmt.Sprintf("side %d", i), whole.Root, s.remote.Head(branch))
				if err != nil {
					t.Fatal(err)
				}
				sides = append(sides, side)
			}
			bad, err := s.remote.Merge(branch, eve, "All", gitobj.Change{}, nil, sides...)
			if err != nil {
				t.Fatal(err)
			}
			got := s.rest()
			if branch == "ledger" && (len(got) != 1 || !strings.HasPrefix(got[0], "undo commit "+bad.Short()+" by Eve <eve@example.org>, whose tree is broken: it merges 65 commits at once")) {
				t.Errorf("committed %q, want one commit that names %s", got, bad.Short())
			}
			if now := s.tree(branch); now.Root != whole.Root {
				t.Error("the ledger is not what it was before")
			}
			s.push(map[string]string{"intents/vision/chat.yaml": intentOf("chat", "1")})
			if got := strings.Join(s.rest(), "\n"); !strings.Contains(got, "place vision/chat ") {
				t.Errorf("after it the daemon commits %q", got)
			}
			s.start()
			s.expect(s.rest())
		})
	}
}
