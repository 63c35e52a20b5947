package reviews

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// signedStory is a fleet that asks for signatures: ada and bob sign for vision,
// and ada approves.
func signedStory(t *testing.T) (s *story, adas, bobs gitrepo.Signer) {
	s = newStory(t)
	_, root := memremote.KeyPair(t, "r")
	adas, adaKey := memremote.KeyPair(t, "a")
	bobs, bobKey := memremote.KeyPair(t, "b")
	s.push(map[string]string{
		"fleet.yaml": ground["fleet.yaml"] + "  verification: {mode: signed, signers: [{principal: root, publicKey: " + root + "}]}\n",
		"tenants/vision.yaml": strings.Replace(ground["tenants/vision.yaml"], "spec: {", fmt.Sprintf(
			"spec: {approvers: [ada@example.org], signers: [{principal: ada@example.org, publicKey: %s}, {principal: bob@example.org, publicKey: %s}], ", adaKey, bobKey), 1),
		"intents/vision/base.yaml": intent("base", 1),
	})
	s.rounds()
	return s, adas, bobs
}

// propose opens a pull request of one commit over main, signed by somebody or
// not.
func (s *story) propose(branch string, by gitrepo.Signer, files map[string]string) int64 {
	s.t.Helper()
	s.remote.SetRef("refs/heads/"+branch, s.remote.Head("main"))
	head, err := s.remote.Merge(branch, mallory, "Ask", puts(files), by)
	if err != nil {
		s.t.Fatal(err)
	}
	n := s.fake.Add(forgetest.Pull{Title: "Ask", Author: "mallory", Branch: branch, Base: "main"})
	s.remote.SetRef(fmt.Sprintf("refs/pull/%d/head", n), head)
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = head.String() })
	return n
}

func (s *story) silent(n int64, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if text := s.comment(n, marker); strings.Contains(text, w) {
			s.t.Errorf("pull request %d: %q is in the comment:\n%s", n, w, text)
		}
	}
}

func TestWhatIsNotVerifiedIsInNoPlan(t *testing.T) {
	s, adas, bobs := signedStory(t)
	asks := map[string]string{"intents/vision/a.yaml": intent("a", 4), "intents/vision/base.yaml": intent("base", 2)}

	n := s.propose("unsigned", nil, asks)
	head := s.remote.Head("unsigned").Short()
	s.pass()
	s.expect(n, "pending failure", "changes nothing that is planned, 1 commit not verified",
		"**Plan: no change** (what is not verified is not acted on)", "**Not acted on until verified**",
		"| `intents/vision/a.yaml` | "+head+" | Mallory &lt;mallory@\u200dexample.org> | it is not signed; this path may be changed by ada@\u200dexample.org, root |",
		"| `intents/vision/base.yaml` | "+head+" |", "Once verified: 1 place, 1 resize (+12.50 EUR/h). Have an authorised account sign")
	s.silent(n, "| + place |", "| tenant |")

	n = s.propose("signed", adas, asks)
	s.pass()
	s.expect(n, "pending success", "1 place, 1 resize (+12.50 EUR/h)", "| + place |", "Each of its commits is verified as it is.")

	n = s.propose("waits", bobs, asks)
	s.pass()
	s.expect(n, "pending success", "changes nothing that is planned, 1 commit not verified",
		"**Plan: no change**", "who is not among the approvers", "Let an approver merge it with a signed merge commit")

	// Who only waits for an approver is told what is wrong all the same.
	n = s.propose("wrong", bobs, map[string]string{"intents/vision/a.yaml": strings.Replace(intent("a", 4), "cpu:", "cpus:", 1)})
	s.pass()
	s.expect(n, "pending failure", "1 problem", "cpus")

	// Nor is policy of the pull request's own looked at before it is signed.
	n = s.propose("policy", nil, map[string]string{"tenants/vision.yaml": strings.Replace(ground["tenants/vision.yaml"], `"25"`, `"1"`, 1)})
	s.pass()
	s.expect(n, "pending failure", "not verified", "| `tenants/vision.yaml` |", "By its own policy the same is planned.")
}

// The base is what is acted on, and not what somebody has pushed there.
func TestTheBaseIsWhatIsVerified(t *testing.T) {
	s, adas, _ := signedStory(t)
	s.push(map[string]string{"intents/vision/big.yaml": intent("big", 7), "intents/vision/base.yaml": "gone: wrong\n"})
	s.rounds()
	n := s.propose("signed", adas, map[string]string{"intents/vision/a.yaml": intent("a", 4)})
	s.pass()
	s.expect(n, "pending success", "1 place (+10.00 EUR/h)", "| vision | 2.50 | 12.50 |")
	s.silent(n, "Not acted on", "vision/big", "base.yaml")

	// Signed content over it is verified, and an old finding is not this one's.
	n = s.propose("mends", adas, map[string]string{"intents/vision/big.yaml": intent("big", 2)})
	s.pass()
	s.expect(n, "pending success", "1 place (+5.00 EUR/h)")
	s.silent(n, "Not acted on")
}

func TestMergedUnverifiedIsSaid(t *testing.T) {
	s, _, _ := signedStory(t)
	files := map[string]string{"intents/vision/a.yaml": intent("a", 4)}
	n := s.propose("unsigned", nil, files)
	s.pass()
	s.merge(n, files) // squashed by the forge
	s.rounds()
	s.pass()
	got := s.comment(n, review.ReservedMarker)
	if !strings.Contains(got, "| vision/a | not acted on | commit "+s.remote.Head("main").Short()+" by Ada L.") {
		t.Errorf("got %q", got)
	}
}

// A squash has no signature, whatever key signed the branch: the pull request says so
// with what to do, for what gives rights too, and says when it is done.
func TestReviews_SquashOfSignedPolicyIsSaid(t *testing.T) {
	s, _, _ := signedStory(t)
	root, _ := memremote.KeyPair(t, "r")
	files := map[string]string{"clusters/oslo.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [provider]}\n"}
	n := s.propose("oslo", root, files)
	s.pass()
	s.merge(n, files)
	squash := s.remote.Head("main")
	s.rounds()
	s.pass()
	got := s.comment(n, review.ReservedMarker)
	for _, want := range []string{"**Not acted on:** the merge made commit " + squash.Short(), "| `clusters/oslo.yaml` |", "git revert -S --no-edit " + squash.Short() + " && git revert -S --no-edit HEAD"} {
		if !strings.Contains(got, want) {
			t.Errorf("the comment lacks %q: %s", want, got)
		}
	}
	if _, err := s.remote.Merge("main", mallory, "Again", puts(map[string]string{"clusters/oslo.yaml": files["clusters/oslo.yaml"] + "# signed\n"}), root); err != nil {
		t.Fatal(err)
	}
	s.rounds()
	s.pass()
	if got = s.comment(n, review.ReservedMarker); !strings.Contains(got, "is signed by now, and in force") {
		t.Errorf("afterwards the comment says %s", got)
	}
}
