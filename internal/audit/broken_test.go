package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// TestBrokenTreesAreToldAndSayNothing: a ledger whose commit git refuses, and
// inputs of that sort, are named, and what follows is judged by what stood
// before.
func TestBrokenTreesAreToldAndSayNothing(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, branch, nil, "")
			bad := s.spoil(t, branch, "manifests")
			s.At = s.At.Add(time.Minute)
			s.Rest() // undoes it
			if branch != "main" {
				s.spoil(t, "main", "intents")
				s.Rest()
			}
			rep := s.verify()
			if len(rep.Violations) != 1 {
				t.Fatalf("got %v, want one violation", rep.Violations)
			}
			v := rep.Violations[0]
			if v.Rule != "tree" || v.Commit != bad.String() || v.Path != "manifests" || !strings.Contains(v.Message, "../x.yaml") || !strings.Contains(v.Message, "stays in force") {
				t.Errorf("got %s", v)
			}
		})
	}
}

// spoil commits a tree that has an entry with a slash in a directory.
func (s *fleet) spoil(t *testing.T, branch, dir string) tree.Hash {
	t.Helper()
	root, err := s.Remote.Tree(s.Remote.Head(branch))
	if err != nil {
		t.Fatal(err)
	}
	set := gitobj.Set{}
	sub, err := root.Sub(dir)
	if err != nil {
		t.Fatal(err)
	}
	below, err := sub.Entries()
	if err != nil {
		t.Fatal(err)
	}
	bad := set.Add(gitobj.Tree, tree.EncodeDir(append([]tree.Entry{{Name: "../x.yaml", Hash: set.Add(gitobj.Blob, []byte("x"))}}, below...)))
	entries, err := root.Entries()
	if err != nil {
		t.Fatal(err)
	}
	entries = append([]tree.Entry{}, entries...)
	for i := range entries {
		if entries[i].Name == dir {
			entries[i].Hash = bad
		}
	}
	who := gitobj.Person{Name: "Eve", Email: "eve@example.org", When: s.At}
	h, err := s.Remote.CommitTree(branch, who, "A typo", set, set.Add(gitobj.Tree, tree.EncodeDir(entries)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestAudit_FollowsTenantsThatAreTooLarge: what was decided for others while one
// tenant's directory was beyond the bounds is found in order, and what was decided
// for that one once another person had made it smaller.
func TestAudit_FollowsTenantsThatAreTooLarge(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, branch, nil, "")
			s.TooLarge("vision")
			if rep := s.verify(); len(rep.Violations) > 0 {
				t.Errorf("meanwhile: %v", rep.Violations)
			}
			s.SmallAgain("vision")
			s.Ask("train", 5, "")
			s.At = s.At.Add(2 * time.Hour)
			s.Rest()
			if got := s.Contract("train").Spec.Intent.Digest; got == "" {
				t.Error("the intent is not decided")
			}
			if rep := s.verify(); len(rep.Violations) > 0 {
				t.Errorf("afterwards: %v", rep.Violations)
			}
		})
	}
}
