package reconciler

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// rootedFleet is fleet.yaml with more under spec.
func rootedFleet(branch, more string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
		"  writeBack: {inputs: main, branch: " + branch + ", author: {name: fleetbroker, email: broker@example.org}" + more
}

// rootOf is a trust root of grace (p) for rights and a daemon (d) for the ledger.
func rootOf(t *testing.T, revoked string) *trust.Root {
	t.Helper()
	_, grace := memremote.KeyPair(t, "p")
	_, daemon := memremote.KeyPair(t, "d")
	root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy:\n  - {principal: grace, publicKey: "+grace+"}\n  ledger:\n  - {principal: daemon, publicKey: "+daemon+revoked+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// rootedStory is a fleet with a trust root, one intent and an unsigned contract
// of it. fleet.yaml names no signers; more is added to its writeBack.
func rootedStory(t *testing.T, branch, more string) (s *story, grace gitrepo.Signer) {
	t.Helper()
	s = newStory(t, branch)
	grace, _ = memremote.KeyPair(t, "p")
	s.signer, _ = memremote.KeyPair(t, "d")
	s.root = rootOf(t, "")
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet(branch, more+"}\n")})
	s.start()
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	return s, grace
}

func unverifiedPaths(s *story) (out []string) {
	for _, f := range s.r.View().Unverified() {
		out = append(out, f.Path)
	}
	return out
}

// What gives rights is signed by a person of the root whatever the fleet says;
// intents are not asked to be.
func TestRootAsksForSignaturesOnRights(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			_, daemonKey := memremote.KeyPair(t, "d")
			s, grace := rootedStory(t, branch, ", signers: [{principal: daemon, publicKey: "+daemonKey+"}]")
			evil := map[string]string{"clusters/oslo.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [consumer]}\n"}
			s.signed(nil, evil)
			s.expect(s.rest())
			if got := unverifiedPaths(s); len(got) != 1 || got[0] != "clusters/oslo.yaml" || s.r.View().Fleet.Clusters["oslo"] != nil {
				t.Errorf("an unsigned cluster is acted on; not verified are %q", got)
			}
			// The daemon's key gives no rights, though writeBack.signers lists it.
			s.signed(s.signer, map[string]string{"clusters/oslo.yaml": evil["clusters/oslo.yaml"] + "# again\n"})
			s.expect(s.rest())
			if s.r.View().Fleet.Clusters["oslo"] != nil {
				t.Error("a key of the ledger gives rights")
			}
			s.start() // nor does a restart take the head as it stands
			s.expect(s.rest())
			if s.r.View().Fleet.Clusters["oslo"] != nil {
				t.Error("after a restart without state an unsigned cluster is acted on")
			}
			s.signed(grace, map[string]string{"clusters/oslo.yaml": evil["clusters/oslo.yaml"]})
			s.rest()
			if s.r.View().Fleet.Clusters["oslo"] == nil {
				t.Error("what a person of the root signed is not acted on")
			}
		})
	}
}

// All that gives rights needs a signature, whoever asks for nothing in the fleet; an
// intent beside it does not, and the ledger's commit of it is signed.
func TestRootAsksForSignaturesOnAllThatGivesRights(t *testing.T) {
	s, grace := rootedStory(t, "ledger", "")
	rights := map[string]string{
		"fleet.yaml":              rootedFleet("ledger", "}\n  currency: EUR\n"),
		"clusters/oslo.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [consumer]}\n",
		"tenants/nlp.yaml":        strings.ReplaceAll(ground, "vision", "nlp"),
		"prices/paris.yaml":       "# expensive\n",
		"flavors/paris/h200.yaml": "# large\n",
	}
	paths := slices.Sorted(maps.Keys(rights))
	both := maps.Clone(rights)
	both["intents/vision/more.yaml"] = intentOf("more", "1")
	s.signed(nil, both)
	if got := s.rest(); len(got) == 0 || !strings.HasPrefix(got[0], "place vision/more ") {
		t.Errorf("an intent without a signature is not placed: %q", got)
	}
	if got := unverifiedPaths(s); !slices.Equal(slices.Sorted(slices.Values(got)), paths) {
		t.Errorf("not verified are %q, want %q", got, paths)
	}
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range log {
		if c.Signature == "" {
			t.Errorf("the ledger's commit %q is not signed", gitobj.Subject(c.Message))
		}
	}
	s.signed(grace, map[string]string{"tenants/nlp.yaml": rights["tenants/nlp.yaml"] + "# signed\n"})
	s.rest()
	if s.r.View().Fleet.Tenants["nlp"] == nil {
		t.Error("what a person of the root signed is not acted on")
	}
}

// The fleet may ask for more: signatures on intents.
func TestRootAsksForSignedIntentsIfTheFleetDoes(t *testing.T) {
	s, grace := rootedStory(t, "ledger", "")
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n  verification: {intents: signed}\n")})
	s.signed(nil, map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
	s.expect(s.rest())
	if got := unverifiedPaths(s); len(got) != 1 || got[0] != "intents/vision/train.yaml" {
		t.Errorf("not verified are %q", got)
	}
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n")})
	if got := s.rest(); len(got) == 0 || len(unverifiedPaths(s)) != 0 {
		t.Errorf("nobody asks for signed intents any more, and %q is held back; committed %q", unverifiedPaths(s), got)
	}
}

// A key that fleet.yaml drops signs nothing, one of the root included.
func TestRootsDroppedKeySignsNothing(t *testing.T) {
	s, grace := rootedStory(t, "ledger", "")
	next, nextKey := memremote.KeyPair(t, "n")
	_, graceKey := memremote.KeyPair(t, "p")
	s.signed(grace, map[string]string{"fleet.yaml": rootedFleet("ledger", "}\n  verification: {signers: [{principal: next, publicKey: "+nextKey+"}, {principal: grace, publicKey: "+graceKey+", dropped: true}]}\n")})
	s.expect(s.rest())
	oslo := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [consumer]}\n"
	s.signed(grace, map[string]string{"clusters/oslo.yaml": oslo + "# by grace\n"})
	s.rest()
	if s.r.View().Fleet.Clusters["oslo"] != nil {
		t.Error("a dropped key still gives rights")
	}
	s.signed(next, map[string]string{"clusters/oslo.yaml": oslo})
	s.rest()
	if s.r.View().Fleet.Clusters["oslo"] == nil {
		t.Error("the key that the chain added gives no rights")
	}
}

// Where no person of the root ever signed, nothing says where to begin.
func TestRootWithoutASignedCommitIsNotReady(t *testing.T) {
	s := newStory(t, "ledger")
	s.root, s.signer = rootOf(t, ""), nil
	s.start()
	if _, err := s.r.Round(t.Context()); err == nil || s.r.Ready() == nil {
		t.Errorf("a round without a base: %v, ready: %v", err, s.r.Ready())
	}
}

// Each commit says up to where the inputs are verified, one that only undoes a
// foreign edit too: a daemon that starts without state, and an auditor, go by it.
func TestRootEachCommitSaysWhatIsVerified(t *testing.T) {
	s, _ := rootedStory(t, "ledger", "")
	before := s.remote.Head("main")
	s.signed(nil, map[string]string{"clusters/oslo.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: oslo}\nspec: {roles: [consumer]}\n"})
	if _, err := s.remote.Commit("ledger", ada, "mine", gitobj.Change{Puts: map[string][]byte{"contracts/vision/xx/train/_intent.yaml": []byte("kind: x\n")}}); err != nil {
		t.Fatal(err)
	}
	s.rest()
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	undo := slices.IndexFunc(log, func(c memremote.Logged) bool { return slices.Contains(gitobj.Trailers(c.Message, "Plan"), "undo") })
	if undo < 0 {
		t.Fatalf("nothing was undone: %s", log[0].Message)
	}
	if got := gitobj.Trailers(log[undo].Message, "Verified"); len(got) != 1 || got[0] != before.String() {
		t.Errorf("the commit that undoes says Verified %q, want %s; its Inputs are %q", got, before, gitobj.Trailers(log[undo].Message, "Inputs"))
	}
}
