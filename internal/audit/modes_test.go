package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/story"
)

const modesFleet = "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
	"  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}, statusInterval: 1s%s}\n  retention: {ended: 30m}\n%s"

// Decisions that people merged, in whatever way, are the daemon's; what they
// change on the way is not.
func TestMergedOffersAreOurs(t *testing.T) {
	for _, way := range []string{"merge", "squash", "rebase"} {
		t.Run(way, func(t *testing.T) {
			s := &fleet{story.New(t, "ledger", nil, ""), t}
			s.Push("Review", map[string]string{"fleet.yaml": fmt.Sprintf(modesFleet, ", mode: pull-request", "")})
			o := s.options()
			live := func() {
				for range 9 {
					s.Rest()
					head := s.Merge(way)
					if head.IsZero() || len(o.Offers) > 0 && head == o.Offers[len(o.Offers)-1] {
						break
					}
					o.Offers = append(o.Offers, head)
				}
			}
			s.Push("Swell", map[string]string{"intents/vision/k/i.yaml": story.Intent("made", 1), "intents/vision/k/kustomization.yaml": "resources: [i.yaml]\n" + bounded.Bomb("ResourceIntent", "metadata")})
			s.Ask("train", 4, "")
			live()
			s.listed(true)
			s.Push("Done", nil, "intents/vision/train.yaml", "intents/vision/k/kustomization.yaml", "intents/vision/k/i.yaml")
			live()
			s.At = s.At.Add(2 * time.Hour)
			live()
			s.listed(false)
			o.Ledger, o.Inputs = s.Remote.Head("ledger"), s.Remote.Head("main")
			rep, err := audit.Verify(t.Context(), s.Remote.Objects(), o)
			if err != nil || len(rep.Violations) > 0 || rep.Contracts != 1 || rep.Decisions < 4 {
				t.Fatalf("%+v %v", rep, err)
			}
			events := 0
			if err := audit.Log(t.Context(), s.Remote.Objects(), o, func(e audit.Event) error {
				events++
				return nil
			}); err != nil || events < 3 {
				t.Errorf("%d events: %v", events, err)
			}
			if way != "merge" { // it takes the offers themselves to know
				without := o
				without.Offers = nil
				if rep, err := audit.Verify(t.Context(), s.Remote.Objects(), without); err != nil || len(rep.Violations) == 0 || rep.Violations[0].Rule != "foreign" {
					t.Errorf("without the offers: %+v %v", rep, err)
				}
			}
			if _, err := s.Remote.Commit("ledger", s.Ada(), "Squash", gitobj.Change{Puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x")}}); err != nil {
				t.Fatal(err)
			}
			o.Ledger = s.Remote.Head("ledger")
			if rep, err := audit.Verify(t.Context(), s.Remote.Objects(), o); err != nil || len(rep.Violations) != 1 || rep.Violations[0].Rule != "foreign" {
				t.Errorf("a change of somebody's own: %+v %v", rep, err)
			}
		})
	}
}

// listed is whether the ledger has a list of what is set aside.
func (s *fleet) listed(want bool) {
	s.t.Helper()
	now, err := s.Remote.Tree(s.Remote.Head(s.Ledger))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err = now.Find("contracts/_set-aside.yaml"); (err == nil) != want {
		s.t.Fatalf("the ledger lists what is set aside: %v, want %v", err == nil, want)
	}
}

// A commit that decides may bring the list of what is set aside only with the
// trailers that name what changes there.
func TestListOfWhatIsSetAsideIsNamed(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.forge(forged{puts: map[string][]byte{"contracts/_set-aside.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: SetAside\npieces:\n- {path: intents/vision/b.yaml, hash: sha256:00, why: crashed, at: \"2026-11-20T12:00:00Z\"}\n")}})
	rep := s.verify()
	if len(rep.Violations) != 1 || rep.Violations[0].Rule != "trailers" || !strings.Contains(rep.Violations[0].Message, `"intents/vision/b.yaml sha256:00 crashed"`) {
		t.Errorf("%+v", rep.Violations)
	}
}

// Where signatures are asked for, a commit is held to what of its inputs was
// verified then, and to who wrote that.
func TestUnverifiedInputsAreNotWhatWasActedOn(t *testing.T) {
	root, rootKey := story.SSHKey(t)
	adas, adaKey := story.SSHKey(t)
	s := &fleet{story.New(t, "ledger", nil, ""), t}
	s.Push("Ask for signatures", map[string]string{
		"fleet.yaml":               fmt.Sprintf(modesFleet, "", "  verification: {mode: signed, signers: [{principal: root, publicKey: "+rootKey+"}]}\n"),
		"tenants/vision.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], signers: [{principal: ada@example.org, publicKey: " + adaKey + "}]}\n",
		"intents/vision/base.yaml": story.Intent("base", 1),
	})
	s.Rest()
	s.Sign(adas, map[string]string{"intents/vision/train.yaml": story.Intent("train", 2)})
	// Mallory writes over it before the daemon looks, and takes the other away.
	mallory := s.Ada()
	mallory.Name, mallory.Email = "Mallory", "m@example.org"
	if _, err := s.Remote.Commit("main", mallory, "More for me", gitobj.Change{
		Puts: map[string][]byte{"intents/vision/train.yaml": []byte(story.Intent("train", 8)), "intents/vision/mine.yaml": []byte(story.Intent("mine", 1))}, Deletes: []string{"intents/vision/base.yaml"},
	}); err != nil {
		t.Fatal(err)
	}
	s.Rest()
	s.Sign(adas, map[string]string{"intents/vision/more.yaml": story.Intent("more", 1)})
	s.Rest()
	s.Sign(root, map[string]string{"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"512\", memory: 2Ti, gpu: 16}\n" +
		"  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}, spot: {gpu: \"1.00\"}}\n"})
	s.Sign(adas, map[string]string{"intents/vision/last.yaml": story.Intent("last", 1)})
	s.Rest()
	rep := s.verify()
	if len(rep.Violations) > 0 || rep.Contracts != 4 {
		t.Fatalf("%+v", rep)
	}
	c := s.Contract("train")
	if got := c.Spec.Resources["nvidia.com/gpu"]; got.Int64() != 2 {
		t.Fatalf("the daemon acted on what Mallory wrote: %v", c.Spec.Resources)
	}
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	if len(gitobj.Trailers(log[0].Message, "Verified")) == 0 {
		t.Fatalf("the newest commit says nothing of what is verified:\n%s", log[0].Message)
	}
	// A daemon that says that all was verified lies.
	s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}})
	rep = s.verify()
	if len(rep.Violations) != 1 || rep.Violations[0].Rule != "inputs" || !strings.Contains(rep.Violations[0].Message, "are verified up to") {
		t.Errorf("%+v", rep.Violations)
	}
}
