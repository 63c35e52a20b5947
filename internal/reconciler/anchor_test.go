package reconciler

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

const (
	notedInputs = "refs/fleetbroker/accepted/inputs"
	notedLedger = "refs/fleetbroker/accepted/ledger"
)

func (s *story) evil(branch, path string) tree.Hash {
	s.t.Helper()
	h, err := s.remote.Commit(branch, ada, "Evil", gitobj.Change{Puts: map[string][]byte{path: []byte("evil: true\n")}})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *story) point(ref string, at tree.Hash) {
	s.remote.SetRef(ref, at)
}

func (s *story) stands(path string) bool {
	s.t.Helper()
	head, err := s.remote.Tree(s.remote.Head(strings.TrimPrefix(s.ledger, "refs/heads/")))
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = head.Find(path)
	return err == nil
}

// An unsigned commit on the ledger is undone by a daemon that knows nothing,
// also where the notes of what was accepted are gone or name that commit.
func TestRootUndoesForeignCommitsWithoutState(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		for how, at := range map[string]func(evil tree.Hash) tree.Hash{
			"Deleted":     func(tree.Hash) tree.Hash { return tree.Hash{} },
			"NameTheEvil": func(evil tree.Hash) tree.Hash { return evil },
		} {
			t.Run(name+how, func(t *testing.T) {
				s, _ := rootedStory(t, branch, "")
				evil := s.evil(branch, "manifests/rome/evil.yaml")
				s.point(notedInputs, at(evil))
				s.point(notedLedger, at(evil))
				s.start()
				s.rest()
				if s.stands("manifests/rome/evil.yaml") {
					t.Error("an unsigned manifest stands after a restart")
				}
				if got, want := s.remote.AllRefs()[notedLedger], s.remote.Head(branch); got != want {
					t.Errorf("accepted is %s, want %s", got.Short(), want.Short())
				}
			})
		}
	}
}

// A note that no key of the root signed stops nobody, and is put right.
func TestRootIsNotStoppedByAForeignNote(t *testing.T) {
	for name, restart := range map[string]bool{"Running": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := rootedStory(t, "ledger", "")
			other := s.evil("elsewhere", "README.md")
			s.point(notedInputs, other)
			s.point(notedLedger, other)
			if restart {
				s.start()
			}
			s.expect(s.rest())
			if refs := s.remote.AllRefs(); refs[notedLedger] != s.remote.Head("ledger") || refs[notedInputs] == other {
				t.Errorf("the notes were not put right: %v", refs)
			}
			if trust := s.r.View().Trust; trust.Unsigned || trust.Fleet != "f3k9q2abu7" || !strings.HasPrefix(trust.Key, "daemon SHA256:") || trust.Sequence == 0 {
				t.Errorf("what signatures are held to is %+v", trust)
			}
			if len(s.r.View().Trust.Alarms) != 2 || s.r.Ready() != nil {
				t.Errorf("alarms %q, ready: %v", s.r.View().Trust.Alarms, s.r.Ready())
			}
			s.lines.Wants(t, "FB1191")
		})
	}
}

// A signed commit that stood and is gone stops the daemon.
func TestRootStopsWhereASignedCommitIsGone(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	s.point("refs/heads/ledger", log[1].Hash)
	s.start()
	_, err = s.r.Round(t.Context())
	var rewritten *gitrepo.ErrRewritten
	if !errors.As(err, &rewritten) {
		t.Errorf("the ledger was put back and the round says %v", err)
	}
}

// Without a signed commit nothing says what of the ledger stands.
func TestRootWithoutASignedLedgerIsNotReady(t *testing.T) {
	s := newStory(t, "ledger")
	s.root = rootOf(t, "")
	grace, _ := memremote.KeyPair(t, "p")
	s.signer, _ = memremote.KeyPair(t, "d")
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n")})
	s.evil("ledger", "manifests/rome/evil.yaml")
	s.start()
	_, err := s.r.Round(t.Context())
	var none *gitrepo.NoAnchorError
	if !errors.As(err, &none) || s.r.Ready() == nil {
		t.Errorf("the round says %v, ready: %v", err, s.r.Ready())
	}
}

// Where the only key that signed the ledger is revoked, the daemon says so.
func TestRootSaysThatTheLedgersKeyIsRevoked(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	head := s.remote.Head("ledger")
	s.root = rootOf(t, ", revoked: {}")
	s.start()
	_, err := s.r.Round(t.Context())
	if want := "The newest signed one, " + head.Short() + ", does not count: the trust root revokes the key of daemon that signed it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the round reports %v, want %q", err, want)
	}
}

// Under a root whose keys are all new, what an operator accepted here raises no
// alarm, though none of them has signed it.
func TestRootOfNewKeysTakesWhatWasAccepted(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	heidi, person := memremote.KeyPair(t, "r")
	signer, daemon := memremote.KeyPair(t, "n")
	root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy:\n  - {principal: heidi, publicKey: "+person+"}\n  ledger:\n  - {principal: next, publicKey: "+daemon+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.root, s.signer = root, signer
	s.start()
	if _, err := s.r.Round(t.Context()); err == nil {
		t.Fatal("a ledger that no key of the root signed is taken unasked")
	}
	s.signed(heidi, map[string]string{"README.md": "Begin here\n"})
	if err := s.r.opts.Repo.AcceptRewrite(t.Context(), s.remote.Head("ledger")); err != nil {
		t.Fatal(err)
	}
	before := s.remote.Head("ledger")
	if _, err := s.r.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alarms := s.r.View().Trust.Alarms; len(alarms) > 0 || s.r.Ready() != nil {
		t.Errorf("alarms %q, ready: %v, ledger %s and %s", alarms, s.r.Ready(), before.Short(), s.remote.Head("ledger").Short())
	}
}

// A daemon whose key others would not take for ours writes nothing.
func TestRootKeepsAnUnlistedDaemonFromWriting(t *testing.T) {
	stolen, _ := memremote.KeyPair(t, "x")
	for name, signer := range map[string]gitrepo.Signer{"Unlisted": stolen, "NoKey": nil} {
		t.Run(name, func(t *testing.T) {
			s, _ := rootedStory(t, "ledger", "")
			s.signer = signer
			s.start()
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
			s.expect(s.rest())
			if err := s.r.Ready(); err == nil || !strings.Contains(err.Error(), "list ledger") {
				t.Errorf("ready says %v", err)
			}
			s.lines.Wants(t, "FB1190")
		})
	}
}

// A trust root that names another fleet than the ledger does, with the same keys,
// writes nothing on it, with a state directory and without.
func TestRootOfAnotherFleetWritesNothing(t *testing.T) {
	for name, dir := range map[string]string{"State": t.TempDir(), "NoState": ""} {
		t.Run(name, func(t *testing.T) {
			s, _ := rootedStory(t, "ledger", "")
			begin := func() {
				startOn(s, dir)
				s.r = New(Options{Repo: s.r.opts.Repo, Ledger: s.ledger, Market: s.r.opts.Market, Now: s.r.opts.Now, Root: s.root, Signer: s.signer})
			}
			begin()
			s.expect(s.rest())
			if err := s.r.opts.Repo.Close(); err != nil {
				t.Fatal(err)
			}
			other := *s.root
			other.FleetID = "f3k9q2abu8"
			s.root = &other
			s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
			begin()
			head := s.remote.Head("ledger")
			_, err := s.r.Round(t.Context())
			if err == nil || !strings.Contains(err.Error(), "fleet f3k9q2abu7") || !strings.Contains(err.Error(), "write `fleetID: f3k9q2abu7` in it, or use another branch") {
				t.Errorf("the round says %v", err)
			}
			if s.remote.Head("ledger") != head {
				t.Error("the daemon wrote on another fleet's ledger")
			}
		})
	}
}

// named are the rewritten heads that a trust root accepts.
type named []letgo.Entry

func (n named) Entries() []letgo.Entry         { return n }
func (n named) Accepted(_ string, _ tree.Hash) {}
func (n named) Unreached(letgo.Entry)          {}

// A ledger that no key of a new root has signed is taken at the head that the root's
// file accepts, by daemons without state. None of them proposes it: nobody answers for it.
func TestRootOfNewKeysTakesWhatItsFileAccepts(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	heidi, person := memremote.KeyPair(t, "r")
	signer, daemon := memremote.KeyPair(t, "n")
	head := s.remote.Head("ledger")
	root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy:\n  - {principal: heidi, publicKey: "+person+"}\n  ledger:\n  - {principal: next, publicKey: "+daemon+"}\n"+
		"  accept:\n  - {branch: ledger, commit: '"+head.String()+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.root, s.signer = root, signer
	s.start()
	s.signed(heidi, map[string]string{"README.md": "Begin here\n"})
	if _, err := s.r.Round(t.Context()); err == nil || strings.Contains(err.Error(), head.String()) ||
		!strings.Contains(err.Error(), "accept: [{branch: ledger, commit: …}]") || !strings.Contains(err.Error(), " by ") {
		t.Fatalf("a ledger that no key of the root signed: %v", err)
	}
	s.start()
	s.r.opts.Repo.Follow(named(root.Accept()))
	for range 3 {
		if _, err := s.r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if alarms := s.r.View().Trust.Alarms; len(alarms) > 0 || s.r.Ready() != nil {
		t.Errorf("alarms %q, ready: %v", alarms, s.r.Ready())
	}
}

// A repository is restored from a backup, and an operator accepts the loss: nothing is left
// to decide, and clusters are told a number above all that they were told before.
func TestRestoredLedgerIsToldWithAHigherNumber(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	backup := map[string]tree.Hash{"main": s.remote.Head("main"), "ledger": s.remote.Head("ledger")}
	s.push(map[string]string{"intents/vision/other.yaml": intentOf("other", "2")})
	s.rest()
	before, _ := s.r.Instructions("paris")
	for branch, head := range backup {
		s.point("refs/heads/"+branch, head)
	}
	s.r.Reread()
	if _, err := s.r.Round(t.Context()); err == nil || s.r.Newest() == nil {
		t.Fatalf("both branches were set back: the round ends with %v, and the ledger that was read is the newest by %v", err, s.r.Newest())
	}
	for _, head := range backup {
		if err := s.r.opts.Repo.AcceptRewrite(t.Context(), head); err != nil {
			t.Fatal(err)
		}
	}
	s.rest()
	after, _ := s.r.Instructions("paris")
	if after.Seq <= before.Seq || len(after.Provide) != 1 || after.Ledger != s.remote.Head("ledger").String() {
		t.Errorf("before the restore paris was told number %d; after it number %d of %s with %d contracts, want a higher one of %s with 1", before.Seq, after.Seq, after.Ledger, len(after.Provide), s.remote.Head("ledger"))
	}
	if err := s.r.Newest(); err != nil {
		t.Errorf("the ledger that was read is not the newest: %v", err)
	}
}

// Where the ledger lies on the branch that people merge into, a head that is no commit is
// not set back: nothing is written, and the reason and the command are shown and logged.
func TestLedgerOnTheInputsBranchIsNotSetBack(t *testing.T) {
	s := newStory(t, "main")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	stood := s.remote.Head("main")
	file, err := s.tree("main").Find("fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.point("refs/heads/main", file.Hash)
	s.at = s.at.Add(time.Minute)
	s.r.Reread()
	if _, err := s.r.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.r.View().Withheld; !strings.Contains(got, "git push --force-with-lease=main:"+file.Hash.String()+" origin "+stood.String()+":main") {
		t.Errorf("why nothing is written is %q", got)
	}
	if s.remote.Head("main") != file.Hash {
		t.Error("the branch was moved")
	}
	s.lines.Wants(t, "FB1192")
}
