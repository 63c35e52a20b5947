package gitrepo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

func proposal() gitrepo.Proposal {
	return gitrepo.Proposal{
		Branch: "enroll/oslo", Puts: map[string][]byte{"clusters/oslo.yaml": []byte("kind: Cluster\n")},
		Message: "Enroll cluster oslo\n", When: noon,
	}
}

func TestAProposalHasABranchOfItsOwn(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	fetch(t, r)
	main := m.Head("main")
	made, err := r.Propose(t.Context(), proposal())
	if !made || err != nil {
		t.Fatalf("made %v, %v", made, err)
	}
	if m.Head("main") != main || !m.Head("ledger").IsZero() {
		t.Error("another branch moved")
	}
	log, err := m.Log("enroll/oslo")
	if err != nil || len(log) != 2 {
		t.Fatalf("the branch has %d commits (%v), want one on the inputs' head", len(log), err)
	}
	tip := m.Head("enroll/oslo")
	at, err := m.Tree(tip)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"clusters/oslo.yaml": "kind: Cluster\n", "intents/vision/a.yaml": "kind: ResourceIntent\n"} {
		if got, err := at.ReadFile(path, 0); string(got) != want || err != nil {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if made, err := r.Propose(t.Context(), proposal()); made || err != nil || m.Head("enroll/oslo") != tip {
		t.Errorf("again: made %v, %v", made, err)
	}
	other := open(t, m, options())
	if made, err := other.Propose(t.Context(), proposal()); made || err != nil || m.Head("enroll/oslo") != tip {
		t.Errorf("another daemon: made %v, %v", made, err)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestAProposalNeverTouchesOurBranches(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	fetch(t, r)
	before := m.AllRefs()
	for _, branch := range []string{"main", "ledger", "refs/heads/main", "refs/fleetbroker/accepted/inputs", "refs/tags/v1"} {
		p := proposal()
		p.Branch = branch
		if made, err := r.Propose(t.Context(), p); made || err == nil {
			t.Errorf("%s: made %v, %v", branch, made, err)
		}
	}
	p := proposal()
	p.Puts = map[string][]byte{"intents/vision/a.yaml": []byte("kind: ResourceIntent\n")}
	if _, err := r.Propose(t.Context(), p); err == nil || !strings.Contains(err.Error(), "changes nothing") {
		t.Errorf("nothing to change: %v", err)
	}
	if after := m.AllRefs(); len(after) != len(before) {
		t.Errorf("refs are %v, were %v", after, before)
	}
}

func TestAProposalWhoseAnswerIsLost(t *testing.T) {
	for name, persisted := range map[string]bool{"persisted": true, "not persisted": false} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			r := open(t, m, options())
			fetch(t, r)
			m.Fault = failing(memremote.Push, persisted, 1)
			made, err := r.Propose(t.Context(), proposal())
			if made != persisted || (err == nil) != persisted || m.Head("enroll/oslo").IsZero() == persisted {
				t.Errorf("made %v, %v", made, err)
			}
			if made, err := r.Propose(t.Context(), proposal()); made == persisted || err != nil {
				t.Errorf("again: made %v, %v", made, err)
			}
			if !slices.ContainsFunc(refsOf(m), func(s string) bool { return s == "refs/heads/enroll/oslo" }) {
				t.Error("there is no branch")
			}
		})
	}
}

func refsOf(m *memremote.Remote) (out []string) {
	for ref := range m.AllRefs() {
		out = append(out, ref)
	}
	return out
}
