package reconciler

import (
	"context"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// signedStory is a fleet in which root signs for everything and ada for vision.
func signedStory(t *testing.T, branch string) (s *story, root, adas gitrepo.Signer) {
	s = newStory(t, branch)
	root, rootKey := memremote.KeyPair(t, "r")
	adas, adaKey := memremote.KeyPair(t, "a")
	s.push(map[string]string{
		"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
			"  writeBack: {inputs: main, branch: " + branch + ", author: {name: fleetbroker, email: broker@example.org}}\n" +
			"  verification: {mode: signed, signers: [{principal: root, publicKey: " + rootKey + "}]}\n",
		"tenants/vision.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], signers: [{principal: ada@example.org, publicKey: " + adaKey + "}]}\n",
		"intents/vision/base.yaml": intentOf("base", "1"),
	})
	s.rest()
	return s, root, adas
}

func (s *story) signed(by gitrepo.Signer, files map[string]string, others ...tree.Hash) tree.Hash {
	s.t.Helper()
	ch := gitobj.Change{Puts: map[string][]byte{}}
	for name, content := range files {
		if content == "-" {
			ch.Deletes = append(ch.Deletes, name)
			continue
		}
		ch.Puts[name] = []byte(content)
	}
	h, err := s.remote.Merge("main", ada, "Ask", ch, by, others...)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func TestOnlySignedInputsAreActedOn(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s, root, adas := signedStory(t, branch)
			s.signed(nil, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest())
			s.signed(adas, map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
			s.expect(s.rest(), "place vision/train on paris/h100 (2x nvidia-h100, 5.00 EUR/h)", peering)

			// Nobody ends, enlarges or lets in anything by an unsigned commit.
			clean := s.remote.Head("main")
			bad := s.signed(nil, map[string]string{"intents/vision/base.yaml": "-", "intents/vision/train.yaml": intentOf("train", "8"), "clusters/oslo.yaml": "-", "clusters/paris.yaml": "-"})
			s.expect(s.rest())
			v := s.r.View()
			var said []string
			for _, f := range v.Unverified() {
				said = append(said, f.Path)
			}
			if got, want := strings.Join(said, " "), "clusters/paris.yaml intents/vision/base.yaml intents/vision/train.yaml"; got != want {
				t.Errorf("not verified are %q, want %q", got, want)
			}
			problem := ""
			for _, d := range v.Fleet.Diagnostics {
				if d.Code == "NotVerified" && d.File == "intents/vision/train.yaml" {
					problem = d.String()
				}
			}
			for _, want := range []string{bad.Short(), "Ada L. <ada@example.org>", "it is not signed", "ada@example.org, root", "git commit -S"} {
				if !strings.Contains(problem, want) {
					t.Errorf("the problem does not say %q: %s", want, problem)
				}
			}
			if got := s.remote.AllRefs()["refs/fleetbroker/accepted/inputs"]; branch == "ledger" && got != clean {
				t.Errorf("accepted is %s, want the last commit of which everything is verified, %s", got.Short(), clean.Short())
			}
			// Nor after a restart without any memory.
			s.start()
			s.expect(s.rest())
			if n := len(s.r.View().Unverified()); n != 3 {
				t.Errorf("after a restart %d paths are not verified, want 3", n)
			}
			// What is committed again by those who may is acted on.
			s.signed(adas, map[string]string{"intents/vision/train.yaml": intentOf("train", "1")})
			s.expect(s.rest(), "resize vision/train on paris/h100 (1x nvidia-h100, 2.50 EUR/h)")
			log, err := s.remote.Log(branch)
			if err != nil {
				t.Fatal(err)
			}
			if got := gitobj.Trailers(log[0].Message, "Verified"); len(got) != 1 {
				t.Errorf("the commit does not say from where to verify again: %s", log[0].Message)
			}
			s.signed(root, map[string]string{"intents/vision/base.yaml": intentOf("base", "1"), "clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n"})
			s.expect(s.rest())
			if v := s.r.View(); len(v.Unverified()) > 0 {
				t.Errorf("still not verified: %v", v.Unverified())
			}
		})
	}
}

// An operator may accept what he looked at.
func TestOperatorAcceptsUnsignedInputs(t *testing.T) {
	s, _, _ := signedStory(t, "ledger")
	head := s.signed(nil, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest())
	if err := s.r.opts.Repo.AcceptRewrite(context.Background(), head); err != nil {
		t.Fatal(err)
	}
	s.expect(s.rest(), placed, peering)
}

// Who wrote what is in force stands in the ledger, and not who wrote over it.
func TestAuthorOfWhatIsInForce(t *testing.T) {
	s, _, adas := signedStory(t, "ledger")
	good := s.signed(adas, map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.signed(nil, map[string]string{"intents/vision/train.yaml": intentOf("train", "8")})
	s.expect(s.rest(), placed, peering)
	if got := s.r.View().Contracts.State("vision", "train").Status.FirstSeen.Commit; got != good.String() {
		t.Errorf("first seen in %s, want %s", got, good)
	}
}
