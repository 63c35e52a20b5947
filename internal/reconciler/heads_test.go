package reconciler

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Two signed commits of which none contains the other: nothing says which stands,
// and both are named.
func TestRootTwoSignedHeadsWithoutOrderAreNotReady(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	s.point("refs/heads/side", log[1].Hash)
	side, err := s.remote.Merge("side", ada, "Beside\n\nPlan: sha256:00\nLedger: ledger 9\n", gitobj.Change{Puts: map[string][]byte{"contracts/x.yaml": []byte("x")}}, s.signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.remote.Merge("ledger", ada, "Merge", gitobj.Change{}, nil, side); err != nil {
		t.Fatal(err)
	}
	s.point(notedInputs, tree.Hash{})
	s.point(notedLedger, tree.Hash{})
	s.start()
	_, err = s.r.Round(t.Context())
	var none *gitrepo.NoAnchorError
	if !errors.As(err, &none) || len(none.Rivals) != 2 {
		t.Fatalf("the round says %v", err)
	}
	for _, h := range []tree.Hash{side, log[0].Hash} {
		if ready := s.r.Ready(); ready == nil || !strings.Contains(ready.Error(), h.String()) {
			t.Errorf("%s is not named: %v", h, ready)
		}
	}
}

// A ledger branch that is gone stops a start without state: what was accepted is
// signed, and not there.
func TestRootStopsWhereTheLedgerIsDeleted(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	s.point("refs/heads/ledger", tree.Hash{})
	s.start()
	_, err := s.r.Round(t.Context())
	var rewritten *gitrepo.ErrRewritten
	if !errors.As(err, &rewritten) || s.remote.Head("ledger") != (tree.Hash{}) {
		t.Errorf("the ledger was deleted and the round says %v", err)
	}
}

// What a revoked key signed after the commit that its entry names is undone; what
// it signed before stands.
func TestRootRevokesALedgerKeyAfterACommit(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	stolen, _ := memremote.KeyPair(t, "d")
	_, grace := memremote.KeyPair(t, "p")
	_, daemon := memremote.KeyPair(t, "d")
	next, nextKey := memremote.KeyPair(t, "n")
	stood := s.remote.Head("ledger")
	if _, err := s.remote.Merge("ledger", ada, "Plant\n\nPlan: sha256:00\nLedger: ledger 9\n", gitobj.Change{Puts: map[string][]byte{"manifests/rome/evil.yaml": []byte("evil: true\n")}}, stolen); err != nil {
		t.Fatal(err)
	}
	root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy:\n  - {principal: grace, publicKey: "+grace+"}\n  ledger:\n  - {principal: daemon, publicKey: "+daemon+", revoked: {after: "+stood.String()+"}}\n  - {principal: next, publicKey: "+nextKey+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.root, s.signer = root, next
	s.start()
	s.rest()
	if s.stands("manifests/rome/evil.yaml") {
		t.Error("what a revoked key signed stands")
	}
	if s.r.View().Contracts == nil || s.r.Ready() != nil {
		t.Errorf("ready: %v", s.r.Ready())
	}
}

// A daemon whose key is dropped while it runs writes nothing more.
func TestRootStopsADaemonWhoseKeyIsDropped(t *testing.T) {
	s, grace := rootedStory(t, "ledger", "")
	_, daemon := memremote.KeyPair(t, "d")
	_, next := memremote.KeyPair(t, "n")
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", ", signers: [{principal: next, publicKey: "+next+"}, {principal: daemon, publicKey: "+daemon+", dropped: true}]}\n")})
	s.rest()
	before := s.remote.Head("ledger")
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
	s.expect(s.rest())
	if s.remote.Head("ledger") != before {
		t.Error("a daemon whose key was dropped wrote the ledger")
	}
	if err := s.r.Ready(); err == nil || !strings.Contains(err.Error(), "list ledger") {
		t.Errorf("ready says %v", err)
	}
}
