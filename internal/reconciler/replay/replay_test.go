package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
	"github.com/fleetbroker/fleetbroker/test/story"
)

const reviewed = "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
	"  writeBack: {mode: pull-request, inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}, statusInterval: 1s}\n"

func replayer(s *story.Story) *replay.Replayer {
	return &replay.Replayer{History: s.Remote.Objects(), Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
		return gitrepo.ReadPublished(ctx, s.Remote, when)
	}}
}

// Every decision of a history comes out again as it was committed, and what was
// only seen says that it was no decision.
func TestEveryDecisionOfAHistoryComesOutAgain(t *testing.T) {
	for _, branch := range []string{"ledger", "main"} {
		s := story.Lived(t, branch, nil, "")
		s.TooLarge("vision")
		s.SmallAgain("vision")
		s.Ask("train", 5, "")
		s.Rest()
		r := replayer(s)
		log, err := s.Remote.Log(branch)
		if err != nil {
			t.Fatal(err)
		}
		decided, seen := 0, 0
		for _, c := range log {
			if len(gitobj.Trailers(c.Message, "Plan")) == 0 {
				continue
			}
			res, err := r.Replay(t.Context(), c.Hash)
			if alone, aerr := replayer(s).Replay(t.Context(), c.Hash); err == nil && (aerr != nil || alone.Replayed != res.Replayed || alone.Same != res.Same) {
				t.Errorf("%s: %s after other replays, %+v alone (%v)", c.Hash.Short(), res.Replayed, alone, aerr)
			}
			switch {
			case errors.Is(err, replay.ErrNoDecision):
				seen++
			case err != nil:
				t.Fatalf("%s (%s): %v", c.Hash.Short(), c.Message, err)
			case !res.Same:
				t.Errorf("%s (%s): %+v", c.Hash.Short(), c.Message, res.Differences)
			default:
				decided++
			}
		}
		if decided < 5 || seen == 0 {
			t.Errorf("%s: %d decisions, %d commits of what was seen", branch, decided, seen)
		}
	}
}

// A commit that holds something else than was decided does not come out again,
// though it states the digest of what it holds.
func TestALieDoesNotComeOutAgain(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(s)
	for _, c := range log {
		if is, err := r.Carries(c.Hash); err != nil || !is || !strings.HasPrefix(c.Message, "place ") {
			continue
		}
		raw, err := r.History.Commit(c.Hash)
		if err != nil {
			t.Fatal(err)
		}
		data, err := gitobj.ParseCommit(raw)
		if err != nil {
			t.Fatal(err)
		}
		root := tree.Tree{Store: r.History, Root: data.Tree}
		var path string
		var text []byte
		err = root.Walk(func(p string, _ tree.Entry) error {
			if strings.HasPrefix(p, "contracts/") && strings.Count(p, "/") == 4 && !strings.HasSuffix(p, "/_intent.yaml") && path == "" {
				b, err := root.ReadFile(p, 0)
				if strings.Contains(string(b), "phase: Reserved") {
					path, text = p, b
				}
				return err
			}
			return nil
		})
		if err != nil || path == "" {
			t.Fatal(path, err)
		}
		lie := strings.Replace(string(text), "hourly: \"", "hourly: \"1", 1)
		if lie == string(text) {
			t.Fatalf("no price in %s", text)
		}
		forged, err := s.Remote.Rewrite("lies", data.Parents[0], data.Committer, data.Message, gitobj.Change{Puts: map[string][]byte{path: []byte(lie)}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Replay(t.Context(), forged)
		if err != nil {
			t.Fatal(err)
		}
		if res.Same || len(res.Differences) == 0 {
			t.Fatalf("the lie came out: %+v", res)
		}
		found := false
		for _, d := range res.Differences {
			found = found || d.Path == path && d.Committed == lie && d.Replayed == string(text)
		}
		if !found {
			t.Errorf("the difference is not told: %+v", res.Differences)
		}
		return
	}
	t.Fatal("no commit places anything")
}

// Snapshots are deleted after a while; what was decided on them can then not be
// decided again, and that is said.
func TestWhatWasPrunedIsSaid(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	s.Remote.SetRef(gitrepo.MarketDay(s.At), tree.Hash{})
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(s)
	first := log[len(log)-1]
	if _, err := r.Replay(t.Context(), first.Hash); !errors.Is(err, gitrepo.ErrPruned) {
		t.Errorf("replay of %s: %v", first.Message, err)
	}
}

// A flavor's file without a capacity adds facts to what an agent reports, a price among
// them: what was decided by it comes out again.
func TestFactsOfAReportedFlavorComeOutAgain(t *testing.T) {
	for name, c := range map[string]struct {
		facts, hourly string
		windows       int
	}{
		"nothing":          {"labels: {tier: gold}", "7.5", 0},
		"a price":          {`price: {currency: EUR, perHour: {gpu: "0.75"}}`, "2.25", 0},
		"spot and windows": {`price: {currency: EUR, spot: {gpu: "0.50"}, windows: [{from: "00:00", to: "06:00", perHour: {gpu: "0.75"}}]}`, "7.5", 1},
		"sizes and carbon": {"partition: {min: {gpu: 4}, step: {gpu: 4}}, properties: {carbon: 40}", "10", 0},
		"price and window": {`price: {currency: EUR, perHour: {gpu: "3"}, windows: [{from: "00:00", to: "06:00", perHour: {gpu: "0.75"}}]}`, "9", 1},
	} {
		s := story.Reported(t, "ledger")
		s.Push("Facts", map[string]string{"flavors/paris/pool.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: pool, namespace: paris}\nspec: {" + c.facts + "}\n"})
		s.Ask("first", 3, "")
		s.Rest()
		held := s.Read().ByIntent("vision", "first")
		if len(held) != 1 {
			t.Fatalf("%s: %d contracts", name, len(held))
		}
		if p := held[0].Spec.Price; p.Hourly.String() != c.hourly || len(p.Windows) != c.windows {
			t.Errorf("%s: it was decided at %+v, want %s and %d windows", name, p, c.hourly, c.windows)
		}
		log, err := s.Remote.Log("ledger")
		if err != nil {
			t.Fatal(err)
		}
		decided := 0
		for _, c := range log {
			res, err := replayer(s).Replay(t.Context(), c.Hash)
			switch {
			case errors.Is(err, replay.ErrNoDecision):
			case err != nil:
				t.Fatalf("%s: %s: %v", name, c.Hash.Short(), err)
			case !res.Same:
				t.Errorf("%s: %s (%s): %+v", name, c.Hash.Short(), c.Message, res.Differences)
			default:
				decided++
			}
		}
		if decided == 0 {
			t.Errorf("%s: nothing was decided", name)
		}
	}
}

// What waits for review is held against all others, in the replay too.
func TestWhatIsOfferedIsHeldInTheReplay(t *testing.T) {
	s := story.New(t, "ledger", nil, "")
	s.Push("Review", map[string]string{"fleet.yaml": reviewed})
	s.Ask("first", 12, "")
	s.Rest()
	s.Ask("urgent", 12, "  priority: 10\n")
	s.Rest()
	head := s.Remote.Head(gitrepo.OfferBranch)
	res, err := replayer(s).Replay(t.Context(), head)
	if err != nil || !res.Same {
		t.Fatalf("%+v: %v", res, err)
	}
	s.Merge("merge")
	if l := s.Read(); len(l.ByIntent("vision", "first")) != 1 || len(l.ByIntent("vision", "urgent")) != 0 {
		t.Error("what came later and is more urgent took the place of what was offered")
	}
}

// What lower rules decided is decided again by those: by the first a quota was
// free as soon as a release began.
func TestARoundIsReplayedByItsOwnRules(t *testing.T) {
	s := story.New(t, "ledger", nil, "")
	s.Push("Quota", map[string]string{"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], quota: {gpu: 4}}\n"})
	s.Ask("first", 4, "")
	s.Rest()
	s.Push("Second for first", map[string]string{"intents/vision/second.yaml": story.Intent("second", 4)}, "intents/vision/first.yaml")
	s.Rest()
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(s)
	for _, c := range log {
		if is, err := r.Carries(c.Hash); err != nil || !is || !strings.Contains(c.Message, " Active -> Releasing") {
			continue
		}
		raw, err := r.History.Commit(c.Hash)
		if err != nil {
			t.Fatal(err)
		}
		data, err := gitobj.ParseCommit(raw)
		if err != nil {
			t.Fatal(err)
		}
		for rules, places := range map[int]bool{1: true, planner.Rules: false} {
			message := strings.Replace(data.Message, fmt.Sprintf("Rules: %d\n", planner.Rules), fmt.Sprintf("Rules: %d\n", rules), 1)
			said, err := s.Remote.Rewrite("said", data.Parents[0], data.Committer, message, gitobj.Change{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := r.Replay(t.Context(), said)
			if err != nil {
				t.Fatal(err)
			}
			placed := slices.ContainsFunc(res.Differences, func(d replay.Difference) bool {
				return strings.HasPrefix(d.Path, "contracts/") && strings.Contains(d.Path, "vision-second-") && d.Replayed != ""
			})
			if placed != places {
				t.Errorf("rules %d: second placed at once: %t, want %t", rules, placed, places)
			}
		}
		return
	}
	t.Fatal("no commit releases anything")
}

// What lower rules decided otherwise is neither made again nor called wrong: the searches
// for batches of then are gone, and so is the order of what waited with a budget of its own.
func TestDecisionsOfLowerRulesAreNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		from  int // the rules from which on it is decided like that
	}{
		"a batch": {map[string]string{
			"intents/vision/one.yaml": story.Intent("one", 1) + "  objective: cost\n", "intents/vision/two.yaml": story.Intent("two", 2) + "  objective: cost\n",
		}, planner.SolvedRules},
		"an order": {map[string]string{
			"tenants/vision.yaml":     tenantOf("vision", "{gpu: 1, maxBorrow: {gpu: 1}}"),
			"tenants/zoe.yaml":        tenantOf("zoe", "{gpu: 4}"),
			"intents/vision/one.yaml": story.Intent("one", 1) + "  replicas: 3\n  gang: false\n  minReplicas: 1\n  budget: {maxHourly: \"20\"}\n",
			"intents/vision/two.yaml": story.Intent("two", 1),
		}, planner.OrderRules},
	} {
		t.Run(name, func(t *testing.T) {
			s := story.New(t, "ledger", nil, "")
			s.Push("Ask", c.files)
			s.Rest()
			log, err := s.Remote.Log("ledger")
			if err != nil {
				t.Fatal(err)
			}
			r := replayer(s)
			at := slices.IndexFunc(log, func(c memremote.Logged) bool { return strings.Contains(c.Message, "- -> Reserved") })
			raw, err := r.History.Commit(log[max(at, 0)].Hash)
			if err != nil {
				t.Fatal(err)
			}
			data, err := gitobj.ParseCommit(raw)
			if err != nil {
				t.Fatal(err)
			}
			for rules, again := range map[int]bool{c.from - 1: false, planner.Rules: true} {
				message := strings.Replace(data.Message, fmt.Sprintf("Rules: %d\n", planner.Rules), fmt.Sprintf("Rules: %d\n", rules), 1)
				other, err := s.Remote.Rewrite("other", tree.Hash{}, data.Committer, message, gitobj.Change{Puts: map[string][]byte{"contracts/README": []byte("x")}})
				if err != nil {
					t.Fatal(err)
				}
				res, err := r.Replay(t.Context(), other)
				if err != nil {
					t.Fatal(err)
				}
				if res.Same || (len(res.Differences) > 0) != again || (res.NotMadeAgain == "") != again {
					t.Errorf("rules %d: %d differences, not made again %q", rules, len(res.Differences), res.NotMadeAgain)
				}
			}
			if res, err := r.Replay(t.Context(), log[max(at, 0)].Hash); err != nil || !res.Same {
				t.Errorf("the decision itself: %+v, %v", res, err)
			}
		})
	}
}

// tenantOf is the file of a tenant with a quota.
func tenantOf(name, quota string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: " + name + "}\nspec: {consumers: [rome], quota: " + quota + "}\n"
}

// What was decided before a reason had its message apart has both in one text: it is
// replayed by its own rules, in the form of then.
func TestOlderReasonsAreReplayedTogether(t *testing.T) {
	s := story.New(t, "ledger", nil, "")
	s.Ask("first", 1, "")
	s.Rest()
	s.Push("Remove it", nil, "intents/vision/first.yaml")
	s.Rest()
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(s)
	at := slices.IndexFunc(log, func(c memremote.Logged) bool { return strings.Contains(c.Message, " Active -> Releasing") })
	raw, err := r.History.Commit(log[max(at, 0)].Hash)
	if err != nil {
		t.Fatal(err)
	}
	data, err := gitobj.ParseCommit(raw)
	if err != nil {
		t.Fatal(err)
	}
	before, err := r.History.Commit(data.Parents[0])
	if err != nil {
		t.Fatal(err)
	}
	parent, err := gitobj.ParseCommit(before)
	if err != nil {
		t.Fatal(err)
	}
	puts, digests, told := map[string][]byte{}, map[string]tree.Hash{}, 0
	err = tree.Diff(tree.Tree{Store: r.History, Root: parent.Tree}, tree.Tree{Store: r.History, Root: data.Tree}, func(path string, _, is tree.Entry) error {
		if !strings.HasPrefix(path, ledger.Root+"/") || is.Hash.IsZero() {
			return nil
		}
		text, err := r.History.File(is.Hash, 0)
		if err != nil {
			return err
		}
		if c := new(v1alpha1.Contract); !strings.HasSuffix(path, ledger.StateFile) && ledger.Decode(text, c) == nil {
			if c.Status.Message != "" {
				told++
			}
			if text, err = ledger.Encode(ledger.Together(c)); err != nil {
				return err
			}
		}
		puts[path], digests[path] = text, tree.BlobHash(text)
		return nil
	})
	if err != nil || told == 0 {
		t.Fatalf("%d contracts have a message, %v", told, err)
	}
	plan := "Plan: " + gitobj.Trailers(data.Message, "Plan")[0]
	for rules, same := range map[int]bool{planner.ReasonRules - 1: true, planner.Rules: false} {
		message := strings.NewReplacer(fmt.Sprintf("Rules: %d\n", planner.Rules), fmt.Sprintf("Rules: %d\n", rules), plan, "Plan: "+ledger.Digest(digests)).Replace(data.Message)
		older, err := s.Remote.Rewrite("older", data.Parents[0], data.Committer, message, gitobj.Change{Puts: puts})
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Replay(t.Context(), older)
		if err != nil {
			t.Fatal(err)
		}
		if res.Same != same || res.NotMadeAgain != "" {
			t.Errorf("rules %d: got same %t (%s), want %t: %+v", rules, res.Same, res.NotMadeAgain, same, res.Differences)
		}
	}
}

// Whose ends are held back depends on who removed what: a replay knows that too.
func TestReplayKnowsWhoRemovedWhatIsHeldBack(t *testing.T) {
	s := story.New(t, "ledger", nil, "")
	files := map[string]string{"tenants/bio.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: bio}\nspec: {consumers: [rome]}\n"}
	var paths []string
	for i := range 8 {
		name, tenant := fmt.Sprintf("job%d", i), "vision"
		if i > 5 {
			tenant = "bio"
		}
		paths = append(paths, "intents/"+tenant+"/"+name+".yaml")
		files[paths[i]] = strings.Replace(story.Intent(name, 1), "namespace: vision", "namespace: "+tenant, 1)
	}
	s.Push("Ask", files)
	s.Rest()
	s.Push("Merge what nobody has looked at", map[string]string{"intents/vision/extra.yaml": story.Intent("extra", 1)}, paths...)
	s.Rest()
	log, err := s.Remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := replayer(s)
	for _, c := range log {
		if strings.Contains(c.Message, " -> Releasing") {
			t.Fatalf("a mistake that spans tenants is not held back:\n%s", c.Message)
		}
		if !strings.HasPrefix(c.Message, "place vision/extra ") {
			continue
		}
		res, err := r.Replay(t.Context(), c.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if !res.Same {
			t.Errorf("%+v", res.Differences)
		}
		return
	}
	t.Fatal("no commit places extra")
}
