package reconciler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// aside is a commit on a branch of its own that leaves another.
func (s *story) aside(from, message, path string, by gitrepo.Signer) tree.Hash {
	s.t.Helper()
	s.point("refs/heads/aside", s.remote.Head(from))
	h, err := s.remote.Merge("aside", ada, message, gitobj.Change{Puts: map[string][]byte{path: []byte("draft\n")}}, by)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// A note of what is accepted counts where that stood on its branch. A signature by
// one whom the trust root lists is not enough: anybody who can push a ref finds
// drafts of people's, offers, and the ledgers of other fleets.
func TestNotesOfWhatNeverStoodStopNobody(t *testing.T) {
	for name, c := range map[string]struct {
		note, from, message, path string
		people                    bool
	}{
		"Draft":       {notedInputs, "main", "Draft", "README.md", true},
		"Offer":       {notedLedger, "ledger", "place x\n\nPlan: sha256:00\nFleet: f3k9q2abu7\n", "contracts/x.yaml", false},
		"OtherFleet":  {notedLedger, "ledger", "place x\n\nPlan: sha256:00\nLedger: ledger 99\nFleet: f3k9q2abu8\n", "contracts/x.yaml", false},
		"OtherLedger": {notedLedger, "ledger", "place x\n\nPlan: sha256:00\nLedger: staging 99\nFleet: f3k9q2abu7\n", "contracts/x.yaml", false},
	} {
		for how, restart := range map[string]bool{"Running": false, "Restarted": true} {
			t.Run(name+how, func(t *testing.T) {
				s, grace := rootedStory(t, "ledger", "")
				by := s.signer
				if c.people {
					by = grace
				}
				note := s.aside(c.from, c.message, c.path, by)
				s.point(c.note, note)
				if restart {
					s.start()
				}
				s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
				if got := s.rest(); len(got) == 0 {
					t.Error("nothing is decided")
				}
				if s.remote.AllRefs()[c.note] == note || len(s.r.View().Trust.Alarms) != 1 {
					t.Errorf("the note is not put right, or not told: %q", s.r.View().Trust.Alarms)
				}
			})
		}
	}
}

// What the signed ledger says that it acted on must be in the branch: who sets the
// inputs back and deletes the notes ends nobody's contracts.
func TestInputsThatWereSetBackStopAStart(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	old := s.remote.Head("main")
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
	s.rest()
	stood := s.remote.Head("main")
	s.point("refs/heads/main", old)
	s.point(notedInputs, tree.Hash{})
	s.point(notedLedger, tree.Hash{})
	s.start()
	before := s.remote.Head("ledger")
	_, err := s.r.Round(t.Context())
	var rewritten *gitrepo.ErrRewritten
	if !errors.As(err, &rewritten) || rewritten.Old != stood || rewritten.New != old || s.remote.Head("ledger") != before {
		t.Fatalf("the inputs were set back, and the round says %v", err)
	}
	if err := s.r.opts.Repo.AcceptRewrite(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.rest()
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	dropped := false
	for _, c := range log {
		dropped = dropped || strings.Contains(c.Message, "Dropped: main "+stood.String())
	}
	if !dropped {
		t.Errorf("the ledger does not name what the operator let go of: %s", log[0].Message)
	}
	s.start() // the ledger says now that it acts on what stands
	s.rest()
}

// A line that left the branch before a key was taken away does not become its own by
// being the first parent of a merge.
func TestDroppedKeySpeaksForNoOtherLine(t *testing.T) {
	for how, restart := range map[string]bool{"Running": false, "Restarted": true} {
		t.Run(how, func(t *testing.T) {
			s, grace := rootedStory(t, "ledger", "")
			heidi, key := memremote.KeyPair(t, "n")
			s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n  verification: {signers: [{principal: heidi, publicKey: "+key+"}]}\n")})
			s.rest()
			s.point("refs/heads/side", s.remote.Head("main"))
			s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n")})
			s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
			s.rest()
			oslo := gitobj.Change{Puts: map[string][]byte{"clusters/oslo.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [consumer]}\n")}}
			if _, err := s.remote.Merge("side", ada, "Oslo", oslo, heidi); err != nil {
				t.Fatal(err)
			}
			set := gitobj.Set{}
			root, err := gitobj.Edit(s.tree("main"), oslo, set)
			if err != nil {
				t.Fatal(err)
			}
			merge, err := s.remote.CommitTree("side", ada, "Merge branch 'main'\n", set, root, nil, s.remote.Head("main"))
			if err != nil {
				t.Fatal(err)
			}
			s.point("refs/heads/main", merge)
			if restart {
				s.start()
			}
			s.rest()
			if s.r.View().Fleet.Clusters["oslo"] != nil || len(unverifiedPaths(s)) != 1 {
				t.Errorf("a key that was taken away still gives rights; not verified is %q", unverifiedPaths(s))
			}
		})
	}
}

// Whoever commits chooses names, and each contract and each reason carries one.
func TestLongNamesOfPeopleStopNothing(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	long := ada
	for _, c := range []struct {
		name, email int
		change      gitobj.Change
	}{
		{9 << 20, 0, gitobj.Change{Puts: map[string][]byte{"intents/vision/more.yaml": []byte(intentOf("more", "1"))}}},
		{1 << 20, 1 << 20, gitobj.Change{Deletes: []string{"intents/vision/more.yaml"}}},
	} {
		long.Name, long.Email = strings.Repeat("A", c.name), strings.Repeat("a", c.email)
		change := c.change
		if _, err := s.remote.Commit("main", long, "Ask", change); err != nil {
			t.Fatal(err)
		}
		if got := s.rest(); len(got) == 0 {
			t.Fatal("nothing is decided")
		}
	}
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range log {
		if len(c.Message) > 10_000 {
			t.Errorf("a message of %d bytes: %.100s", len(c.Message), c.Message)
		}
	}
	s.start()
	s.push(map[string]string{"intents/vision/next.yaml": intentOf("next", "1")})
	if got := s.rest(); len(got) == 0 {
		t.Error("nothing is decided after a restart")
	}
}

// Each parent of a merge is compared with each: one push could take hours.
func TestMergesOfManySayNothing(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		t.Run(branch, func(t *testing.T) {
			s, grace := rootedStory(t, "ledger", "")
			path := map[string]string{"main": "intents/vision/", "ledger": "contracts/vision/"}[branch]
			var many []tree.Hash
			for i := range 300 {
				many = append(many, s.aside(branch, fmt.Sprintf("Draft %d", i), fmt.Sprintf("%s%d.txt", path, i), nil))
			}
			whole := s.tree("main")
			evil := gitobj.Change{Puts: map[string][]byte{path + "evil.yaml": []byte(intentOf("evil", "1"))}}
			merge, err := s.remote.Merge(branch, ada, "Merge branches", evil, grace, many...)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				start := time.Now()
				s.rest()
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("a merge of %d took %s", len(many), took)
				}
				if it := s.r.View().Fleet.Intent("vision", "evil"); it != nil {
					t.Error("it is acted on")
				}
				s.start()
			}
			if branch == "ledger" {
				if s.stands(path + "evil.yaml") {
					t.Error("it is not undone")
				}
				return
			}
			if b := s.r.View(); b.Fleet != nil {
				t.Fatal("a daemon that starts shows what it has not read")
			}
			s.over(whole, nil, map[string]string{"intents/vision/next.yaml": intentOf("next", "1")})
			if got := s.rest(); len(got) == 0 {
				t.Errorf("nothing is decided after %s", merge.Short())
			}
		})
	}
}
