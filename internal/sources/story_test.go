package sources

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// story is a daemon whose fleet names a source.
type story struct {
	*rig
	remote *memremote.Remote
	branch string
	at     time.Time
	loop   *reconciler.Reconciler
}

const group = "apiVersion: fleetbroker.io/v1alpha1\n"

func intentOf(name, gpus string) string {
	return group + "kind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:" + gpus + "\"}\n"
}

func newTale(t *testing.T, branch string) *story {
	t.Helper()
	s := &story{rig: newRig(t, nil), remote: memremote.New(), branch: branch, at: time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC)}
	url := s.source("own", "vision").URL
	s.inputs(map[string]string{
		"fleet.yaml": group + "kind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: " + branch + ", author: {name: fleetbroker, email: broker@example.org}}\n" +
			"  sources: [{name: own, url: \"" + url + "\", tenants: [vision]}]\n",
		"clusters/rome.yaml":      group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n",
		"clusters/paris.yaml":     group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
		"tenants/vision.yaml":     group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
		"flavors/paris/h100.yaml": group + "kind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"64\", memory: 512Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
	})
	s.start()
	return s
}

func (s *story) inputs(files map[string]string) {
	s.t.Helper()
	puts := map[string][]byte{}
	for name, content := range files {
		puts[name] = []byte(content)
	}
	bob := gitobj.Person{Name: "Bob", Email: "bob@example.org", When: s.at}
	if _, err := s.remote.Commit("main", bob, "Change the fleet", gitobj.Change{Puts: puts}); err != nil {
		s.t.Fatal(err)
	}
}

// start makes a daemon that knows nothing, as after a crash on another machine.
func (s *story) start() {
	s.t.Helper()
	now := func() time.Time { return s.at }
	repo, err := gitrepo.Open(context.Background(), s.remote, gitrepo.Options{
		Inputs: "main", Ledger: s.branch, Now: now, Rand: func() float64 { return 0.5 }, Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	opts := s.opts
	opts.Dir, opts.Now = s.t.TempDir(), now
	if s.Keeper, err = New(opts); err != nil {
		s.t.Fatal(err)
	}
	s.loop = reconciler.New(reconciler.Options{Repo: repo, Ledger: s.branch, Market: market.New(market.Options{Now: now}), Now: now, Sources: s.Keeper})
}

// rest reads the sources and makes rounds until one has nothing to do.
func (s *story) rest() []gitrepo.Commit {
	s.t.Helper()
	var out []gitrepo.Commit
	for quiet := 0; quiet < 2; {
		s.at = s.at.Add(time.Minute)
		s.loop.Reread()
		o, err := s.loop.Round(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, c := range o.Committed {
			out = append(out, c.Commit)
		}
		if quiet++; len(o.Committed) > 0 || o.Again {
			quiet = 0
		}
		s.ReadAll(s.t.Context())
		if len(out) > 20 {
			s.t.Fatal("it does not come to rest")
		}
	}
	return out
}

// file is a file of a commit, "" where there is none.
func (s *story) file(commit tree.Hash, name string) string {
	s.t.Helper()
	raw, err := s.remote.Objects().Commit(commit)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := tree.Tree{Store: s.remote.Objects(), Root: c.Tree}.ReadFile(name, 1<<20)
	if err != nil {
		return ""
	}
	return string(b)
}

func subjects(list []gitrepo.Commit) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Subject())
	}
	return strings.Join(out, "\n")
}

// What is decided on a source stands in one commit with its copy; audit and replay need
// no other repository.
func TestStory_DecisionsOnASource(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := newTale(t, branch)
			head := s.push("own", map[string]string{"intents/vision/train.yaml": intentOf("train", "4"), "intents/other/x.yaml": "x"}, false)
			commits := s.rest()
			if got, want := subjects(commits), "place vision/train on paris/h100 (4x nvidia-h100, 10.00 EUR/h)"; got != want {
				t.Fatalf("committed %q, want %q; %+v", got, want, s.Status())
			}
			place := commits[0]
			if got := gitobj.Trailers(place.Message, sourced.Trailer); len(got) != 1 || got[0] != "own "+head.String() {
				t.Errorf("trailers Source: %q", got)
			}
			if got := s.file(place.Hash, "sources/own/intents/vision/train.yaml"); got != intentOf("train", "4") {
				t.Errorf("the commit's copy is %q", got)
			}
			if got := s.file(place.Hash, "sources/own/intents/other/x.yaml"); got != "" {
				t.Errorf("another tenant's file was copied: %q", got)
			}
			contract := s.loop.View().Contracts.ByIntent("vision", "train")[0]
			if in := contract.Spec.Intent; in.Path != "sources/own/intents/vision/train.yaml" || in.Author != "Ada <ada@example.org>" {
				t.Errorf("the contract's intent: %+v", in)
			}

			// A change that decides nothing is copied alone; a restart elsewhere finds only keeps.
			second := s.push("own", map[string]string{"intents/vision/train.yaml": intentOf("train", "4") + "# a word\n"}, false)
			if got, want := subjects(s.rest()), "copy source own "+second.String(); got != want {
				t.Errorf("committed %q, want %q", got, want)
			}
			s.start()
			if got := subjects(s.rest()); got != "" {
				t.Errorf("after a restart committed %q", got)
			}

			// An intent that the fleet repo names too is frozen, and what stands is kept.
			s.inputs(map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
			if got := subjects(s.rest()); strings.Contains(got, "release") || strings.Contains(got, "resize") {
				t.Errorf("two files name one intent, and it was not frozen: %q", got)
			}
			s.inputs(map[string]string{"intents/vision/train.yaml": intentOf("other", "1")})
			s.rest()

			// Rewritten, then gone: the copy stays in force, a restart included.
			s.push("own", map[string]string{"intents/vision/train.yaml": intentOf("train", "8")}, true)
			if got := subjects(s.rest()); got != "" || !strings.Contains(s.of("own").Frozen, "its history was rewritten") {
				t.Errorf("after a force-push committed %q, frozen for %q", got, s.of("own").Frozen)
			}
			if err := os.RemoveAll(filepath.Join(s.root, "own.git")); err != nil {
				t.Fatal(err)
			}
			s.start()
			if got := subjects(s.rest()); got != "" || s.of("own").Frozen == "" {
				t.Errorf("after the repository was deleted committed %q, %+v", got, s.of("own"))
			}
			if got := len(s.loop.View().Contracts.ByIntent("vision", "train")); got != 1 {
				t.Errorf("%d contracts are left, want 1", got)
			}
			s.judged()
		})
	}
}

// judged holds the whole history to the audit, and makes each decision again.
func (s *story) judged() {
	s.t.Helper()
	objects := s.remote.Objects()
	report, err := audit.Verify(s.t.Context(), objects, audit.Options{Ledger: s.remote.Head(s.branch), Inputs: s.remote.Head("main"), All: true})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range report.Violations {
		s.t.Errorf("audit: %s", v)
	}
	replayer := &replay.Replayer{History: objects, Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
		return gitrepo.ReadPublished(ctx, s.remote, when)
	}}
	again := 0
	for h := s.remote.Head(s.branch); !h.IsZero(); {
		raw, err := objects.Commit(h)
		if err != nil {
			s.t.Fatal(err)
		}
		c, err := gitobj.ParseCommit(raw)
		if err != nil {
			s.t.Fatal(err)
		}
		if decided, err := replayer.Carries(h); err != nil {
			s.t.Fatal(err)
		} else if decided {
			again++
			if res, err := replayer.Replay(s.t.Context(), h); err != nil || !res.Same {
				s.t.Errorf("%s does not replay: %+v, %v", gitobj.Subject(c.Message), res, err)
			}
		}
		if h = (tree.Hash{}); len(c.Parents) > 0 {
			h = c.Parents[0]
		}
	}
	if again == 0 {
		s.t.Error("no decision was made again")
	}
}

// A git server that refuses what a source brings (it may scan for secrets) stops that
// source alone.
func TestStory_RefusedCopyStopsItsSourceAlone(t *testing.T) {
	s := newTale(t, "ledger")
	s.push("own", map[string]string{"intents/vision/train.yaml": intentOf("train", "2")}, false)
	s.rest()
	s.remote.Hook = func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.HasPrefix(p, "sources/own/") {
				return errors.New("this looks like a secret")
			}
		}
		return nil
	}
	s.push("own", map[string]string{"intents/vision/leak.yaml": intentOf("leak", "1")}, false)
	s.inputs(map[string]string{"intents/vision/web.yaml": intentOf("web", "1")})
	got := subjects(s.rest())
	if want := "place vision/web on paris/h100 (1x nvidia-h100, 2.50 EUR/h)"; got != want {
		t.Errorf("committed %q, want %q", got, want)
	}
	if why := s.of("own").Frozen; !strings.Contains(why, "the fleet repo refuses a commit with its copy") || !strings.Contains(why, "this looks like a secret") {
		t.Errorf("frozen for %q", why)
	}
	s.remote.Hook = nil
	s.push("own", map[string]string{"intents/vision/leak.yaml": "", "intents/vision/fine.yaml": intentOf("fine", "1")}, false)
	s.ReadAll(t.Context())
	if got, want := subjects(s.rest()), "place vision/fine on paris/h100 (1x nvidia-h100, 2.50 EUR/h)"; got != want {
		t.Errorf("committed %q, want %q", got, want)
	}
	if s.of("own").Frozen != "" {
		t.Errorf("frozen for %q", s.of("own").Frozen)
	}
	s.judged()
}
