package reconciler

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Whom a Cluster file names to apply manifests is let in with no contract made
// meanwhile, once.
func TestDeliverersAreLetInAtOnce(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, branch)
			rome := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], deliverers: [ci@example.org]}\n"
			s.push(map[string]string{"clusters/rome.yaml": rome, "intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest(), placed, peering)
			s.push(map[string]string{"clusters/rome.yaml": strings.Replace(rome, "ci@", "cd@", 1)})
			s.rest()
			text, err := s.clusters.desired["rome"].Tree.ReadFile("namespaces/policies/namespace-guard.yaml", 1<<20)
			if err != nil || !strings.Contains(string(text), "'cd@example.org'") || strings.Contains(string(text), "ci@example.org") {
				t.Errorf("rome is told %v\n%s", err, text)
			}
			log, err := s.remote.Log(branch)
			if err != nil || !strings.HasPrefix(log[0].Message, "render manifests of rome again: its contracts and Cluster files say otherwise") {
				t.Errorf("the newest commit is %q, %v", log[0].Message, err)
			}
			head := s.remote.Head(branch)
			s.start()
			s.rest()
			if now := s.remote.Head(branch); now != head {
				t.Errorf("with nothing to do the ledger went from %s to %s", head, now)
			}
		})
	}
}

// asDaemon commits to the ledger as the daemon would, with what trailers it has.
func (s *story) asDaemon(files map[string]string, trailers ...string) {
	s.t.Helper()
	ch := gitobj.Change{Puts: map[string][]byte{}}
	for name, text := range files {
		if text == "" {
			ch.Deletes = append(ch.Deletes, name)
			continue
		}
		ch.Puts[name] = []byte(text)
	}
	who := gitobj.Person{Name: "fleetbroker", Email: "broker@example.org", When: s.at}
	message := "manifests as they were once\n\nInputs: " + s.remote.Head("main").String() + "\n" + strings.Join(append(trailers, "Plan: render"), "\n") + "\n"
	if _, err := s.remote.Commit(s.ledger, who, message, ch); err != nil {
		s.t.Fatal(err)
	}
	s.r.ask.Store(true)
}

const (
	romeGuard = "manifests/rome/namespaces/policies/intent-guard.yaml"
	romeExtra = "manifests/rome/namespaces/policies/older.yaml"
)

// After an upgrade the new rendering is on the ledger before anything is
// delivered or decided, in commits that decide nothing; what has no number is
// from before numbering, and where the bytes are the same nothing is written.
func TestAnUpgradeIsRenderedFirst(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, branch)
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest(), placed, peering)
			s.asDaemon(map[string]string{romeGuard: "# older\n", romeExtra: "# gone since\n"}, "Renderer: 0")
			s.push(map[string]string{"intents/vision/serve.yaml": intentOf("serve", "2")})
			s.start()
			told := s.clusters.told
			out, err := s.r.Round(t.Context())
			if err != nil || !out.Again || out.Plan != nil || s.clusters.told != told {
				t.Errorf("the first round: %+v, %v; told %d of %d", out, err, s.clusters.told, told)
			}
			log, err := s.remote.Log(branch)
			if err != nil || !strings.HasPrefix(log[0].Message, fmt.Sprintf("render manifests of rome again: rendering %d; the one before had no number", manifests.Renderer)) || !strings.Contains(log[0].Message, "\nPlan: render\n") ||
				!strings.Contains(log[0].Message, fmt.Sprintf("\nRenderer: %d\n", manifests.Renderer)) || strings.Contains(log[0].Message, "Contract:") {
				t.Errorf("the newest commit is %q, %v", log[0].Message, err)
			}
			s.rest()
			want := s.clusters.desired["rome"]
			if text, err := want.Tree.ReadFile("namespaces/policies/intent-guard.yaml", 1<<20); err != nil || !strings.Contains(string(text), "ValidatingAdmissionPolicy") {
				t.Errorf("rome is told %s, %v", text, err)
			}
			if _, err := want.Tree.Find("namespaces/policies/older.yaml"); !errors.Is(err, fs.ErrNotExist) || want.Wait != "" || len(want.Contracts) != 2 {
				t.Errorf("what is no longer rendered stays: %v; it waits: %q; %d contracts", err, want.Wait, len(want.Contracts))
			}

			s.asDaemon(map[string]string{"NOTES": "from before numbering\n"})
			head := s.remote.Head(branch)
			s.start()
			if s.rest(); s.remote.Head(branch) != head || s.clusters.desired["rome"].Wait != "" {
				t.Errorf("with the same bytes the ledger went from %s to %s, rome waits: %q", head, s.remote.Head(branch), s.clusters.desired["rome"].Wait)
			}
		})
	}
}

// A program that does not know the ledger's rendering decides and delivers
// nothing, gives the clusters up, and says so. A number that nobody of ours wrote
// does not count.
func TestANewerRenderingIsLeftToWhoKnowsIt(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	if _, err := s.remote.Commit("ledger", gitobj.Person{Name: "M", Email: "mallory@example.org", When: s.at}, "note\n\nPlan: render\nRenderer: 99", gitobj.Change{Puts: map[string][]byte{"NOTES": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	s.r.ask.Store(true)
	if s.rest(); s.r.Ready() != nil || s.clusters.desired["rome"].Mode == delivery.None {
		t.Errorf("a stranger's number stops it: %v", s.r.Ready())
	}
	s.asDaemon(map[string]string{romeGuard: "# newer\n"}, fmt.Sprintf("Renderer: %d", manifests.Renderer+1))
	s.push(map[string]string{"intents/vision/serve.yaml": intentOf("serve", "2")})
	head := s.remote.Head("ledger")
	for range 2 {
		if out, err := s.r.Round(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rendering %d, and this program knows up to %d", manifests.Renderer+1, manifests.Renderer)) || out.Plan != nil {
			t.Errorf("the round: %+v, %v", out, err)
		}
	}
	if s.r.Ready() == nil || s.remote.Head("ledger") != head || s.clusters.desired["rome"].Mode != delivery.None {
		t.Errorf("ready %v, the ledger went from %s to %s, rome's mode is %s", s.r.Ready(), head, s.remote.Head("ledger"), s.clusters.desired["rome"].Mode)
	}
}

// The same for the format of its files, whatever this program makes of them: what it
// cannot read is not damaged. Each commit of ours states the format.
func TestALedgerOfANewerFormatIsLeftToWhoKnowsIt(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	log, err := s.remote.Log("ledger")
	if err != nil || !strings.Contains(log[0].Message, fmt.Sprintf("\n%s: %d\n", ledger.FormatTrailer, ledger.Format)) {
		t.Errorf("the newest commit is %q, %v", log[0].Message, err)
	}
	stranger := gitobj.Person{Name: "M", Email: "mallory@example.org", When: s.at}
	if _, err := s.remote.Commit("ledger", stranger, "note\n\nPlan: render\nFormat: 99", gitobj.Change{Puts: map[string][]byte{"NOTES": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	s.r.ask.Store(true)
	if s.rest(); s.r.Ready() != nil {
		t.Errorf("a stranger's number stops it: %v", s.r.Ready())
	}
	s.asDaemon(map[string]string{"contracts/vision/aa/new/vision-new-0-aaaaaaaa.yaml": "apiVersion: fleetbroker.io/v9\nkind: Holding\n"}, fmt.Sprintf("Format: %d", ledger.Format+1))
	s.push(map[string]string{"intents/vision/serve.yaml": intentOf("serve", "2")})
	head := s.remote.Head("ledger")
	for range 2 {
		if out, err := s.r.Round(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the ledger has format %d, and this program knows up to %d", ledger.Format+1, ledger.Format)) || out.Plan != nil {
			t.Errorf("the round: %+v, %v", out, err)
		}
	}
	if s.r.Ready() == nil || s.remote.Head("ledger") != head || s.clusters.desired["rome"].Mode != delivery.None {
		t.Errorf("ready %v, the ledger went from %s to %s, rome's mode is %s", s.r.Ready(), head, s.remote.Head("ledger"), s.clusters.desired["rome"].Mode)
	}
}

// While contracts stand whose provider has no Cluster file any more, what they
// render to is not known: nothing of their consumer is torn down or written.
func TestAProviderWithoutAFileTearsNothingDown(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	in, err := s.r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	without := *in.fleet
	without.Clusters = maps.Clone(in.fleet.Clusters)
	delete(without.Clusters, "paris")
	in.fleet = &without
	s.r.renewed.of["rome"] = &comparison{facts: &manifests.Facts{}}
	waits, wrote, err := s.r.renew(t.Context(), in)
	if err != nil || wrote || !strings.Contains(waits["rome"], "clusters/paris.yaml is gone while contracts with paris are held") {
		t.Errorf("waits %v, wrote %t, %v", waits, wrote, err)
	}
}

// differing is delivery that says of rome that the ledger has other manifests.
type differing struct{ *clusters }

func (d differing) Differing() map[string]bool { return map[string]bool{"rome": true} }

// What was tampered with under our number is put back, and told once.
func TestTamperedManifestsArePutBack(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	was, err := s.remote.Tree(s.remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	s.asDaemon(map[string]string{romeGuard: "# nothing\n", romeExtra: "kind: MutatingAdmissionPolicy\n"}, fmt.Sprintf("Renderer: %d", manifests.Renderer))
	s.r.opts.Delivery = differing{s.clusters}
	s.rest()
	now, err := s.remote.Tree(s.remote.Head("ledger"))
	if err != nil || now.Root != was.Root {
		t.Errorf("the ledger has %s, had %s, %v", now.Root, was.Root, err)
	}
	head := s.remote.Head("ledger")
	if s.rest(); s.remote.Head("ledger") != head {
		t.Error("it is put back again")
	}
}

// Where people merge what the daemon writes, an upgrade is offered to them by
// itself; until it is merged nothing is decided and nothing that differs is
// touched, and it is offered once.
func TestAnUpgradeWaitsForReview(t *testing.T) {
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprint("merge ", merge), func(t *testing.T) {
			s, p := reviewedStory(t, true)
			p.ready = true
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.rest()
			if s.contracts() != 1 {
				t.Fatal(p.calls)
			}
			if !merge {
				s.push(map[string]string{"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {mode: pull-request, inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n"})
				s.rest()
			}
			s.asDaemon(map[string]string{romeGuard: "# older\n"}, "Renderer: 0")
			s.push(map[string]string{"intents/vision/serve.yaml": intentOf("serve", "2")})
			s.start()
			s.r.opts.PullRequests = p
			p.ready, p.calls = merge, nil
			s.rest()
			if merge {
				p.ready = true
				s.rest()
				if s.contracts() != 2 || s.clusters.desired["rome"].Wait != "" {
					t.Errorf("merged by the daemon: %d contracts, rome waits %q; %v", s.contracts(), s.clusters.desired["rome"].Wait, p.calls)
				}
				return
			}
			if p.open == nil || !strings.Contains(p.open.Title, "rome") || !strings.Contains(s.clusters.desired["rome"].Wait, "waits for review: merge https://forge.example.org/pulls/1") || s.contracts() != 1 {
				t.Fatalf("offered %+v; rome waits %q; %d contracts", p.open, s.clusters.desired["rome"].Wait, s.contracts())
			}
			saved := len(p.calls)
			if s.rest(); slices.Contains(p.calls[saved:], "save "+p.open.Title) {
				t.Errorf("offered again: %v", p.calls[saved:])
			}
			if err := p.byHand("merge", s.remote.Head(gitrepo.OfferBranch)); err != nil {
				t.Fatal(err)
			}
			s.r.ask.Store(true)
			s.rest()
			text, err := s.clusters.desired["rome"].Tree.ReadFile("namespaces/policies/intent-guard.yaml", 1<<20)
			if err != nil || !strings.Contains(string(text), "ValidatingAdmissionPolicy") || s.clusters.desired["rome"].Wait != "" {
				t.Errorf("merged by a person: rome waits %q, has %.80s, %v", s.clusters.desired["rome"].Wait, text, err)
			}
			if p.open == nil || strings.Contains(p.open.Title, "rendered again") {
				t.Errorf("the next decision is not offered: %+v, %v", p.open, p.calls)
			}
		})
	}
}

// Two intents that want one namespace offloaded in different ways: the first decides, and
// the log says of the other what is not rendered.
func TestManifestsThatContradictEachOther(t *testing.T) {
	s := newStory(t, "ledger")
	offload := func(name, strategy string) string {
		return intentOf(name, "1") + "  offload: {namespaces: [{name: vision, podOffloadingStrategy: " + strategy + "}]}\n"
	}
	s.push(map[string]string{"intents/vision/train.yaml": offload("train", "Remote")})
	s.rest()
	s.push(map[string]string{"intents/vision/serve.yaml": offload("serve", "LocalAndRemote")})
	s.rest()
	if n := s.contracts(); n != 2 {
		t.Errorf("%d contracts, want 2: %v", n, s.r.View().Fleet.Diagnostics)
	}
	s.lines.Wants(t, "FB1184")
}

// failing is a store that cannot list one directory.
type failing struct {
	tree.Store
	dir tree.Hash
}

func (f failing) Dir(h tree.Hash) ([]tree.Entry, error) {
	if h == f.dir {
		return nil, errors.New("input/output error")
	}
	return f.Store.Dir(h)
}

// TestManifestsThatCannotBeRead_AreToldAndComparedLater: where the local copy fails between two
// reads of a directory, what it holds is not taken for other manifests: the log names the
// consumer, nothing is written, and a later round compares it.
func TestManifestsThatCannotBeRead_AreToldAndComparedLater(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	s.start()
	if _, err := s.r.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(s.r.renewed.of, "rome")
	in, err := s.r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := in.heads.Ledger.Tree
	sub, err := whole.Sub(manifests.Dir("rome"))
	if err != nil || sub.IsZero() {
		t.Fatal("rome has no manifests", err)
	}
	head := s.remote.Head("ledger")
	in.heads.Ledger.Tree.Store = failing{whole.Store, sub.Root}
	again := s.r.renewOne(in)
	_, compared := s.r.renewed.of["rome"]
	if _, due := s.r.renewed.due["rome"]; again || compared || due || s.remote.Head("ledger") != head {
		t.Errorf("more to do %t, compared %t, to be written %t", again, compared, due)
	}
	s.lines.Wants(t, "FB1123")
	in.heads.Ledger.Tree = whole
	s.r.renewOne(in)
	if _, compared = s.r.renewed.of["rome"]; !compared || s.remote.Head("ledger") != head {
		t.Error("it is not compared once the directory can be read")
	}
}
