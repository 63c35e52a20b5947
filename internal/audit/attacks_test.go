package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// eve may push to the ledger, and has a key that nobody trusts.
func (s *fleet) eve() gitobj.Person {
	return gitobj.Person{Name: "Eve", Email: "eve@example.org", When: s.At}
}

// merge puts a branch on a merge of two commits that has a third's tree.
func (s *fleet) merge(branch string, like tree.Hash, signer gitrepo.Signer, parents ...tree.Hash) {
	s.t.Helper()
	t, err := s.Remote.Tree(like)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Remote.SetRef(gitrepo.Branch(branch), parents[0])
	if _, err := s.Remote.CommitTree(branch, s.eve(), "Merge branch 'ledger'", nil, t.Root, signer, parents[1:]...); err != nil {
		s.t.Fatal(err)
	}
}

// A merge of an old ledger commit and the head, with the old one's tree, is a
// fast-forward and takes back every decision since.
func TestAudit_FindsRollbackByMerge(t *testing.T) {
	signer, public := story.SSHKey(t)
	for name, c := range map[string]struct {
		signer gitrepo.Signer
		public string
		turned bool
	}{
		"unsigned": {}, "signed": {signer: signer, public: public}, "head first": {signer: signer, public: public, turned: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, "ledger", c.signer, c.public)
			honest := s.verify()
			log, err := s.Remote.Log("ledger")
			if err != nil {
				t.Fatal(err)
			}
			old, head := log[len(log)-3].Hash, s.Remote.Head("ledger")
			if c.turned {
				s.merge("ledger", old, nil, head, old)
			} else {
				s.merge("ledger", old, nil, old, head)
			}
			rep := s.verify()
			if rep.Commits != honest.Commits+1 || rep.Contracts != honest.Contracts {
				t.Errorf("%d commits and %d contracts, want those of the honest ledger and the merge: %d and %d", rep.Commits, rep.Contracts, honest.Commits+1, honest.Contracts)
			}
			merge := s.Remote.Head("ledger").String()
			if len(rep.Violations) == 0 || slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule != "foreign" || v.Commit != merge }) {
				t.Errorf("violations: %v, want rule foreign at the merge %.7s", rep.Violations, merge)
			}
			s.Ask("later", 1, "")
			s.Start()
			s.Rest()
			if after := s.verify(); c.public != "" && len(after.Violations) != len(rep.Violations) {
				t.Errorf("after the daemon undid it: %v", after.Violations[len(rep.Violations):])
			}
		})
	}
}

// A second merge hides neither the first nor what was decided between the commits that
// they roll back to, though its ledger is what that decision had made: both are named,
// and the daemon's numbers go on.
func TestAudit_FindsRollbacksByMergesInARow(t *testing.T) {
	signer, public := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	good := s.Remote.Head("ledger")
	if _, err := s.Remote.Commit("ledger", s.eve(), "evil", gitobj.Change{Puts: map[string][]byte{"manifests/rome/evil.yaml": []byte("kind: Secret\n")}}); err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Rest()
	before := s.verify()
	var merges []string
	for _, old := range []tree.Hash{log[len(log)-3].Hash, good} {
		s.merge("ledger", old, nil, old, s.Remote.Head("ledger"))
		merges = append(merges, s.Remote.Head("ledger").String())
	}
	s.Ask("later", 1, "")
	s.Start()
	s.Rest()
	rep := s.verify()
	for _, v := range rep.Violations[len(before.Violations):] {
		if v.Rule != "foreign" || !slices.Contains(merges, v.Commit) {
			t.Errorf("%s", v)
		}
	}
	for _, m := range merges {
		if !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Commit == m }) {
			t.Errorf("nothing is said of the merge %.7s", m)
		}
	}
}

// A merge that has what one side has and another side's decisions too is
// nothing by itself, and neither is a branch of people's that knows an old ledger.
func TestAudit_TakesHarmlessMerges(t *testing.T) {
	s := lived(t, "main", nil, "")
	log, err := s.Remote.Log("main")
	if err != nil {
		t.Fatal(err)
	}
	side, err := s.Remote.Rewrite("side", log[len(log)-4].Hash, s.Ada(), "Fix a typo", gitobj.Change{Puts: map[string][]byte{"NOTES.md": []byte("x\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remote.Merge("main", s.Ada(), "Merge branch 'side'", gitobj.Change{Puts: map[string][]byte{"NOTES.md": []byte("x\n")}}, nil, side); err != nil {
		t.Fatal(err)
	}
	s.Ask("later", 1, "")
	s.Rest()
	if rep := s.verify(); len(rep.Violations) > 0 {
		t.Errorf("violations: %v, want none", rep.Violations)
	}
}

// A pull request that brings an unrelated root into the inputs (merged "ours",
// so that its diff is a typo) makes no fleet of that root: not its tenants, not
// its signers.
func TestAudit_RefusesUnrelatedInputs(t *testing.T) {
	signer, public := story.SSHKey(t)
	eves, evesKey := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	acted := s.Remote.Head("main")
	was, err := s.Remote.Tree(acted)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string][]byte{}
	if err := was.Walk(func(path string, e tree.Entry) (err error) {
		own[path], err = was.Store.File(e.Hash, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	own["fleet.yaml"] = []byte(strings.Replace(string(own["fleet.yaml"]), public, evesKey, 1))
	own["intents/vision/ghost.yaml"] = []byte(story.Intent("ghost", 1))
	root, err := s.Remote.Rewrite("pull", tree.Hash{}, s.eve(), "Fix a typo", gitobj.Change{Puts: own})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remote.Merge("main", s.Ada(), "Merge pull request #7", gitobj.Change{Puts: map[string][]byte{"NOTES.md": []byte("x\n")}}, nil, root); err != nil {
		t.Fatal(err)
	}
	before := s.Remote.Head("ledger")
	s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, trailers: map[string]string{"Inputs": root.String()}, signer: eves})
	rep := s.verify()
	head := s.Remote.Head("ledger").String()
	if len(rep.Violations) == 0 || rep.Violations[0].Commit != head || rep.Violations[0].Rule != "inputs" || !strings.Contains(rep.Violations[0].Message, "--accept-rewrite "+root.String()) {
		t.Errorf("violations: %v, want rule inputs at %.7s", rep.Violations, head)
	}
	if !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == "signature" }) {
		t.Errorf("violations: %v, want rule signature: nobody trusted has signed", rep.Violations)
	}
	// An entry of the trust root for what came later excuses it no more than it has a
	// daemon take it.
	o := s.options()
	o.Root, err = trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: a0a0a0a0a0\n  unsigned: true\n  accept:\n"+
		"  - {branch: main, commit: '"+s.Remote.Head("main").String()+"', drops: '"+acted.String()+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	rep, err = audit.Verify(t.Context(), s.Remote.Objects(), o)
	if err != nil || !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == "inputs" && v.Commit == head }) {
		t.Errorf("violations: %v, %v, want rule inputs", rep.Violations, err)
	}
	// Named by an operator, the root is what the inputs are; its signers are still
	// nobody whom a trusted key has let in.
	o = s.options()
	o.AcceptRewrite = []tree.Hash{root}
	rep, err = audit.Verify(t.Context(), s.Remote.Objects(), o)
	if err != nil || len(rep.Violations) == 0 || slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == "inputs" }) || rep.Violations[0].Rule != "signature" {
		t.Errorf("violations: %v, %v, want rule signature", rep.Violations, err)
	}
	// What a trusted key signs is good with the rewrite named.
	s.Remote.SetRef(gitrepo.Branch("ledger"), before)
	s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, trailers: map[string]string{"Inputs": root.String()}, signer: signer})
	o.Ledger = s.Remote.Head("ledger")
	if rep, err = audit.Verify(t.Context(), s.Remote.Objects(), o); err != nil || len(rep.Violations) > 0 {
		t.Errorf("violations: %v, %v, want none", rep.Violations, err)
	}
}

// A key is let in by one that was trusted before.
func TestAudit_RotationIsSignedByAnOldKey(t *testing.T) {
	old, oldKey := story.SSHKey(t)
	next, nextKey := story.SSHKey(t)
	for by, signer := range map[string]gitrepo.Signer{"old": old, "new": next} {
		s := lived(t, "ledger", old, oldKey)
		text, err := s.Remote.Tree(s.Remote.Head("main"))
		if err != nil {
			t.Fatal(err)
		}
		policy, err := text.ReadFile("fleet.yaml", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.Push("Rotate", map[string]string{"fleet.yaml": strings.Replace(string(policy), oldKey, nextKey, 1)})
		s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, signer: signer})
		s.forge(forged{puts: map[string][]byte{"requests/vision/202611/y.yaml": []byte("x\n")}, signer: next})
		rep := s.verify()
		if by == "old" && len(rep.Violations) > 0 {
			t.Errorf("violations: %v, want none", rep.Violations)
		}
		if by == "new" && (len(rep.Violations) == 0 || rep.Violations[0].Rule != "signature") {
			t.Errorf("violations: %v, want rule signature", rep.Violations)
		}
	}
}

// A merge that keeps the ledger and joins a branch of Eve's makes nothing of
// that branch the ledger's, neither for the audit nor for the daemon.
func TestAudit_ForeignBranchMergedOurs(t *testing.T) {
	signer, public := story.SSHKey(t)
	for name, message := range map[string]string{"forged": "reserve\n\nPlan: sha256:00\n", "plain": "evil"} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, "ledger", signer, public)
			head := s.Remote.Head("ledger")
			evil, err := s.Remote.Rewrite("aside", head, s.eve(), message, gitobj.Change{Puts: map[string][]byte{"manifests/rome/evil.yaml": []byte("kind: Secret\n")}})
			if err != nil {
				t.Fatal(err)
			}
			s.merge("ledger", head, nil, head, evil)
			s.Start()
			s.Ask("later", 1, "")
			s.Rest()
			is, err := s.Remote.Tree(s.Remote.Head("ledger"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := is.Find("manifests/rome/evil.yaml"); err == nil {
				t.Error("the daemon has put Eve's file on the ledger")
			}
			rep := s.verify()
			if name == "plain" && len(rep.Violations) > 0 || name == "forged" && len(rep.Violations) == 0 {
				t.Errorf("violations: %v", rep.Violations)
			}
		})
	}
}
