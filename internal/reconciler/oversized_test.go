package reconciler

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// deepIn is a directory in which one lies in another, levels of them.
func deepIn(set gitobj.Set, levels int) tree.Hash {
	h := set.Add(gitobj.Tree, tree.EncodeDir([]tree.Entry{{Name: "x.yaml", Kind: tree.File, Hash: set.Add(gitobj.Blob, []byte(intentOf("x", "1")))}}))
	for range levels {
		h = set.Add(gitobj.Tree, tree.EncodeDir([]tree.Entry{{Name: "d", Kind: tree.Dir, Hash: h}}))
	}
	return h
}

// manyIn is a directory of dirs different ones with files each.
func manyIn(set gitobj.Set, dirs, files int) tree.Hash {
	text := set.Add(gitobj.Blob, []byte("kind: x\n"))
	var top []tree.Entry
	for d := range dirs {
		below := make([]tree.Entry, files)
		for f := range files {
			below[f] = tree.Entry{Name: "x" + strconv.Itoa(d) + "-" + strconv.Itoa(f), Hash: text}
		}
		tree.Sort(below)
		top = append(top, tree.Entry{Name: "d" + strconv.Itoa(d), Kind: tree.Dir, Hash: set.Add(gitobj.Tree, tree.EncodeDir(below))})
	}
	tree.Sort(top)
	return set.Add(gitobj.Tree, tree.EncodeDir(top))
}

// TestOversizedTenant_StopsItselfAlone: a tenant's directory beyond the bounds
// leaves that tenant's intents as they were last read, and what the same commit
// asks for another tenant is decided, in fleets that ask for signatures and in
// others, with the ledger apart and on the inputs' branch. That lasts over a
// restart without memory, and ends when the directory is made smaller.
func TestOversizedTenant_StopsItselfAlone(t *testing.T) {
	for name, large := range map[string]func(set gitobj.Set) tree.Hash{
		"deep":       func(set gitobj.Set) tree.Hash { return deepIn(set, 31) },
		"bomb":       func(set gitobj.Set) tree.Hash { return bombIn(set, 25) },
		"small bomb": func(set gitobj.Set) tree.Hash { return bombIn(set, 6) },
		"entries":    func(set gitobj.Set) tree.Hash { return manyIn(set, 30, 20) },
	} {
		for _, branch := range []string{"ledger", "main"} {
			for _, signed := range []bool{true, false} {
				t.Run(name+"/"+branch+map[bool]string{true: "/signed", false: "/unsigned"}[signed], func(t *testing.T) {
					oversized(t, branch, signed, name == "entries", large)
				})
			}
		}
	}
}

func oversized(t *testing.T, branch string, signed, small bool, large func(gitobj.Set) tree.Hash) {
	var s *story
	var root, adas gitrepo.Signer
	if signed {
		s, root, adas = signedStory(t, branch)
	} else {
		s = newStory(t, branch)
		s.push(map[string]string{"intents/vision/base.yaml": intentOf("base", "1")})
	}
	if small {
		s.bounds = tree.Bounds{Entries: 1000, Depth: 32, Bytes: 1 << 20}
		s.start()
	}
	s.signed(root, map[string]string{"tenants/nlp.yaml": strings.Replace(ground, "vision", "nlp", 1)})
	s.rest()
	base := s.only("base").Metadata.Name
	inputs := s.tree("main")

	// The tenant's own person may change its directory, and asks for something.
	set := gitobj.Set{}
	bad := spoiled(t, inputs, "intents/vision", set, tree.Entry{Name: "large", Kind: tree.Dir, Hash: large(set)},
		tree.Entry{Name: "more.yaml", Hash: set.Add(gitobj.Blob, []byte(intentOf("more", "2")))})
	if _, err := s.remote.CommitTree("main", eve, "Large", set, bad, adas); err != nil {
		t.Fatal(err)
	}
	asked := strings.ReplaceAll(intentOf("talk", "1"), "namespace: vision", "namespace: nlp")
	s.signed(root, map[string]string{"intents/nlp/talk.yaml": asked})
	for range 2 { // the second time without any memory
		s.rest()
		v := s.r.View()
		if v.Trouble != "" || len(v.Verified.Broken) > 0 {
			t.Fatalf("stopped: %q, %v", v.Trouble, v.Verified.Broken)
		}
		if n := len(v.Contracts.ByIntent("nlp", "talk")); n != 1 {
			t.Errorf("the other tenant has %d contracts, want 1", n)
		}
		if got := s.only("base"); got.Metadata.Name != base || !got.Status.Phase.Charged() {
			t.Errorf("the contract of the frozen intent is %s, %s", got.Metadata.Name, got.Status.Phase)
		}
		if n := len(v.Contracts.ByIntent("vision", "more")); n != 0 {
			t.Errorf("an intent next to what is not read has %d contracts", n)
		}
		if !slices.ContainsFunc(v.Fleet.Diagnostics, func(d fleet.Diagnostic) bool {
			return d.File == "intents/vision" && d.Code == "OverLimit" && strings.Contains(d.Message, "--max-tree-depth") && d.Severity == fleet.Error
		}) {
			t.Errorf("it is not reported: %v", v.Fleet.Diagnostics)
		}
		if v.Verified.Clean != s.lastInputs(branch) {
			t.Errorf("verified up to %s", v.Verified.Clean.Short())
		}
		s.start()
	}
	// Who may not change the tenant's directory does not get in by making it smaller.
	if signed {
		before := s.tree("main").Root
		s.signed(nil, map[string]string{"intents/vision/large": "-"})
		s.rest()
		if n := len(s.r.View().Contracts.ByIntent("vision", "more")); n != 0 {
			t.Errorf("by an unsigned commit there are %d contracts", n)
		}
		if _, err := s.remote.CommitTree("main", ada, "Revert", nil, before, adas); err != nil {
			t.Fatal(err)
		}
	}
	s.signed(adas, map[string]string{"intents/vision/large": "-", "intents/vision/more.yaml": "-"})
	s.signed(adas, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	if n := len(s.r.View().Contracts.ByIntent("vision", "train")); n != 1 {
		t.Errorf("afterwards there are %d contracts, want 1: %v", n, s.r.View().Fleet.Diagnostics)
	}
	if got := s.only("base"); got.Metadata.Name != base {
		t.Errorf("the contract of the intent is %s, was %s", got.Metadata.Name, base)
	}
}

// lastInputs is the newest commit of the inputs that people made.
func (s *story) lastInputs(branch string) tree.Hash {
	s.t.Helper()
	head := s.r.View().Inputs
	if branch == "main" {
		return s.r.View().Verified.Said
	}
	return head
}
