package reviews

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// reviewedStory is a fleet whose decisions go by pull request into a branch.
func reviewedStory(t *testing.T, branch string) *story {
	s := newStory(t)
	s.push(map[string]string{"fleet.yaml": strings.Replace(ground["fleet.yaml"], "{inputs: main, branch: ledger", "{mode: pull-request, inputs: main, branch: "+branch, 1)})
	s.daemon(branch)
	return s
}

// What waits in the daemon's own pull request is held against what another asks
// for, whatever its priority.
func TestWhatIsOfferedIsHeldInOtherPlans(t *testing.T) {
	s := reviewedStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intent("train", 8)})
	s.rounds()
	n := s.ask(map[string]string{"intents/vision/urgent.yaml": intent("urgent", 4) + "  priority: 900\n"})
	s.pass()
	s.expect(n, "pending success", "1 queue", "? queue")
	s.silent(n, "vision/train")
}

// On one branch for all the daemon's own pull request stands among those that
// it looks after. It passes as long as it is the daemon's.
func TestOwnPullRequestIsNotPlanned(t *testing.T) {
	s := reviewedStory(t, "main")
	s.push(map[string]string{"intents/vision/train.yaml": intent("train", 8)})
	s.rounds()
	var n int64 = 1
	offered := s.remote.Head(gitrepo.OfferBranch)
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = offered.String() })
	s.pass()
	s.expect(n, "success", "decided by fleetbroker; reserved once it is merged")
	if got := s.comment(n, marker); got != "" {
		t.Errorf("the daemon plans its own plan:\n%s", got)
	}
	theirs, err := s.remote.Commit(gitrepo.OfferBranch, mallory, "More for me", gitobj.Change{Puts: map[string][]byte{"contracts/vision/aa/x.yaml": []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = theirs.String() })
	s.pass()
	s.expect(n, "pending", "it is brought up to date") // not fetched yet
	s.loop.Reread()
	if _, err := s.loop.Round(t.Context()); err != nil {
		t.Logf("the round says %v", err)
	}
	s.pass()
	s.expect(n, "pending failure", "another account pushed")
}
