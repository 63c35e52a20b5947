package reconciler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// pulls is a forge with room for one pull request.
type pulls struct {
	remote *memremote.Remote
	branch string // of the ledger
	now    func() time.Time
	open   *forge.PullRequest
	body   string
	ready  bool
	// calls made, as words.
	calls []string
}

func (p *pulls) Open(context.Context, string) ([]forge.PullRequest, error) {
	p.calls = append(p.calls, "list")
	if p.open == nil {
		return nil, nil
	}
	return []forge.PullRequest{{Number: 9, HeadBranch: "somebody/else"}, *p.open}, nil
}

func (p *pulls) Save(_ context.Context, d forge.Draft) (forge.PullRequest, error) {
	p.calls = append(p.calls, "save "+d.Title)
	p.open = &forge.PullRequest{Number: 1, Title: d.Title, HeadBranch: d.Head, Base: d.Base, URL: "https://forge.example.org/pulls/1"}
	p.body = d.Body
	return *p.open, nil
}

func (p *pulls) Close(_ context.Context, number int64) error {
	p.calls = append(p.calls, fmt.Sprint("close ", number))
	p.open = nil
	return nil
}

func (p *pulls) Merge(_ context.Context, number int64, m forge.Merge) error {
	p.calls = append(p.calls, fmt.Sprint("merge ", number))
	switch head := p.remote.Head(gitrepo.OfferBranch); {
	case m.Head != head.String():
		return forge.ErrMoved
	case !p.ready:
		return fmt.Errorf("merge: %w: 1 approval is missing", forge.ErrNotReady)
	default:
		return p.byHand("merge", head)
	}
}

// byHand merges the branch as a person does, in one of the forges' ways.
func (p *pulls) byHand(way string, head tree.Hash) error {
	grace := gitobj.Person{Name: "Grace H.", Email: "grace@example.org", When: p.now()}
	p.open = nil
	was, err := p.remote.Tree(p.remote.Head(p.branch))
	if err != nil {
		return err
	}
	is, err := p.remote.Tree(head)
	if err != nil {
		return err
	}
	ch := gitobj.Change{Puts: map[string][]byte{}}
	err = tree.Diff(was, is, func(path string, _, to tree.Entry) error {
		if to.Hash.IsZero() {
			ch.Deletes = append(ch.Deletes, path)
			return nil
		}
		ch.Puts[path], err = is.Store.File(to.Hash, 0)
		return err
	})
	switch {
	case err != nil:
	case way == "merge":
		_, err = p.remote.Merge(p.branch, grace, "Merge", ch, nil, head)
	case way == "fast-forward":
		p.remote.SetRef("refs/heads/"+p.branch, head)
	default: // squash and rebase: a commit of the forge's own
		_, err = p.remote.Commit(p.branch, grace, "Squash", ch)
	}
	return err
}

func reviewedStory(t *testing.T, merge bool) (*story, *pulls) {
	return reviewedStoryOn(t, "ledger", merge)
}

func reviewedStoryOn(t *testing.T, branch string, merge bool) (*story, *pulls) {
	s := newStory(t, branch)
	s.push(map[string]string{"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {mode: pull-request, merge: " + fmt.Sprint(merge) + ", inputs: main, branch: " + branch + ", author: {name: fleetbroker, email: broker@example.org}}\n"})
	p := &pulls{remote: s.remote, branch: branch, now: func() time.Time { return s.at }}
	s.r.opts.PullRequests = p
	return s, p
}

// contracts counts those on the ledger.
func (s *story) contracts() int {
	s.t.Helper()
	t, err := s.remote.Tree(s.remote.Head(s.ledger))
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	_ = t.Walk(func(name string, _ tree.Entry) error {
		if strings.HasPrefix(name, "contracts/") && !strings.HasSuffix(name, "_intent.yaml") {
			n++
		}
		return nil
	})
	return n
}

func TestDecisionsWaitForReview(t *testing.T) {
	for _, way := range []string{"merge", "squash", "fast-forward"} {
		t.Run(way, func(t *testing.T) {
			s, p := reviewedStory(t, false)
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest())
			head := s.remote.Head(gitrepo.OfferBranch)
			if p.open == nil || p.open.Title != placed || p.open.Base != "ledger" || !strings.Contains(p.body, "- `"+placed+"`") {
				t.Fatalf("the pull request is %+v:\n%s", p.open, p.body)
			}
			if s.contracts() != 0 || !s.clusters.desired["rome"].Tree.IsZero() || len(s.clusters.desired["rome"].Contracts) > 0 {
				t.Error("what waits for review is on the ledger, or delivered")
			}
			// Time alone changes nothing, nor another daemon.
			s.expect(s.rest())
			other := s.r
			s.start()
			s.r.opts.PullRequests = other.opts.PullRequests
			s.expect(s.rest())
			if got := s.remote.Head(gitrepo.OfferBranch); got != head {
				t.Errorf("the branch moved from %s to %s though nothing was decided again", head.Short(), got.Short())
			}
			if err := p.byHand(way, head); err != nil {
				t.Fatal(err)
			}
			s.expect(s.rest())
			if s.contracts() != 1 || s.clusters.desired["rome"].Tree.IsZero() {
				t.Error("what was merged is not delivered")
			}
			if p.open == nil || p.open.Title != peering { // what follows is decided, and offered
				t.Fatalf("after the merge the pull request is %+v", p.open)
			}
			if err := p.byHand(way, s.remote.Head(gitrepo.OfferBranch)); err != nil {
				t.Fatal(err)
			}
			s.expect(s.rest())
			if h := s.remote.Head(gitrepo.OfferBranch); !h.IsZero() || p.open != nil {
				t.Errorf("nothing is left to decide, and the branch stands at %s, with %+v", h.Short(), p.open)
			}
			calls := len(p.calls)
			if s.rest(); len(p.calls) != calls {
				t.Errorf("rounds with nothing to decide ask the forge: %q", p.calls[calls:])
			}
		})
	}
}

// What waits is held against the plans that follow, and goes when nobody wants it.
func TestOnePullRequestFollowsThePlan(t *testing.T) {
	s, p := reviewedStory(t, false)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "8")})
	s.rest()
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "8")}) // first by name, second by time
	s.rest()
	if !strings.Contains(p.body, "place vision/train on paris/h100 (8x") || !strings.Contains(p.body, "queue vision/more") {
		t.Errorf("8 GPUs of 8 wait for review, and the pull request says:\n%s", p.body)
	}
	log, err := s.remote.Log(gitrepo.OfferBranch)
	if err != nil || len(log) != 2 || log[1].Message != "Begin the ledger\n\nLedger: ledger 1\n" || strings.Contains(log[0].Message, "Ledger: ") {
		t.Errorf("the branch is not one commit on the ledger: %v, %v", log, err)
	}
	if _, err := s.remote.Commit("main", ada, "Done", gitobj.Change{Deletes: []string{"intents/vision/train.yaml", "intents/vision/more.yaml"}}); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if p.open != nil || !s.remote.Head(gitrepo.OfferBranch).IsZero() || p.calls[len(p.calls)-1] != "close 1" {
		t.Errorf("nothing is left to decide, and the forge was told %q", p.calls)
	}
}

func TestOwnPullRequestsAreMergedWhenTheyMay(t *testing.T) {
	s, p := reviewedStory(t, true)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	if s.contracts() != 0 || p.open == nil {
		t.Fatal("it was merged though a check is missing")
	}
	p.ready = true
	s.rest()
	if s.contracts() != 1 || p.open != nil || s.clusters.desired["rome"].Tree.IsZero() {
		t.Errorf("it was not merged when it could be: %q", p.calls)
	}
	s.lines.Wants(t, "FB1188")
}

func TestBranchOfOffersThatSomebodyElsePushedTo(t *testing.T) {
	s, _ := reviewedStory(t, false)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	theirs, err := s.remote.Commit(gitrepo.OfferBranch, ada, "My own wishes", gitobj.Change{Puts: map[string][]byte{"contracts/vision/aa/x.yaml": []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	s.at = s.at.Add(time.Minute)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "2")})
	s.r.Reread()
	if _, err := s.r.Round(context.Background()); err == nil || !strings.Contains(err.Error(), "another account pushed to the branch fleetbroker/decisions") {
		t.Errorf("the round says %v", err)
	}
	if s.remote.Head(gitrepo.OfferBranch) != theirs {
		t.Error("somebody's commit was overwritten")
	}
	s.delete("intents/vision/train.yaml") // nothing is left to decide, and their branch stays
	s.r.Reread()
	if _, err := s.r.Round(context.Background()); err != nil || s.remote.Head(gitrepo.OfferBranch) != theirs {
		t.Errorf("with nothing to decide: %v, the branch is at %s", err, s.remote.Head(gitrepo.OfferBranch))
	}
	s.lines.Wants(t, "FB1189")
	s.remote.SetRef("refs/heads/"+gitrepo.OfferBranch, tree.Hash{})
	s.rest()
}

// Only what is offered on the ledger as it stands is recognised: an old offer
// put on a newer ledger would roll it back.
func TestOldOfferIsForeign(t *testing.T) {
	s, p := reviewedStory(t, false)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	first := s.remote.Head(gitrepo.OfferBranch)
	if err := p.byHand("squash", first); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if err := p.byHand("squash", s.remote.Head(gitrepo.OfferBranch)); err != nil {
		t.Fatal(err)
	}
	s.rest()
	good, err := s.remote.Tree(s.remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.byHand("squash", first); err != nil {
		t.Fatal(err)
	}
	s.at = s.at.Add(time.Minute)
	s.r.Reread()
	_, err = s.r.Round(context.Background())
	if err == nil || !strings.Contains(err.Error(), "generated files were edited by others") || p.open == nil || !strings.Contains(p.open.Title, "undo edits of generated files by Grace H.") {
		t.Fatalf("the round says %v, and the pull request is %+v", err, p.open)
	}
	if err := p.byHand("merge", s.remote.Head(gitrepo.OfferBranch)); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if now, err := s.remote.Tree(s.remote.Head("ledger")); err != nil || now.Root != good.Root {
		t.Errorf("the ledger is not what it was: %v", err)
	}
}

func TestReviewWithoutAForgeWritesNothing(t *testing.T) {
	s, _ := reviewedStory(t, false)
	s.r.opts.PullRequests = nil
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest())
	if err := s.r.Ready(); err == nil || !strings.Contains(err.Error(), "--forge-token-file") {
		t.Errorf("readiness says %v", err)
	}
	if len(s.remote.AllRefs()) != 1 {
		t.Errorf("something was written: %v", s.remote.AllRefs())
	}
}

// On one branch for all, decisions are offered on the newest of what people
// write, which moves while they wait.
func TestDecisionsWaitForReviewOnOneBranch(t *testing.T) {
	for _, way := range []string{"merge", "squash", "fast-forward"} {
		t.Run(way, func(t *testing.T) {
			s, p := reviewedStoryOn(t, "main", false)
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest())
			first := s.remote.Head(gitrepo.OfferBranch)
			if p.open == nil || p.open.Title != placed || p.open.Base != "main" || s.contracts() != 0 {
				t.Fatalf("%d contracts, and the pull request is %+v", s.contracts(), p.open)
			}
			main := s.remote.Head("main")
			s.push(map[string]string{"README.md": "hello"})
			s.rest()
			if got := s.remote.Head(gitrepo.OfferBranch); got == first || p.open.Title != placed {
				t.Errorf("main moved from %s, and what is offered stands on it: %s, %+v", main.Short(), got.Short(), p.open)
			}
			for range 2 { // what was placed is peering then
				if err := p.byHand(way, s.remote.Head(gitrepo.OfferBranch)); err != nil {
					t.Fatal(err)
				}
				s.expect(s.rest())
				s.at = s.at.Add(time.Minute)
			}
			if s.contracts() != 1 || p.open != nil || !s.remote.Head(gitrepo.OfferBranch).IsZero() || s.clusters.desired["rome"].Tree.IsZero() {
				t.Errorf("after the merges there are %d contracts, and %+v", s.contracts(), p.open)
			}
			if t2, err := s.remote.Tree(s.remote.Head("main")); err != nil {
				t.Fatal(err)
			} else if _, err := t2.Find("README.md"); err != nil {
				t.Errorf("what people wrote meanwhile is gone: %v", err)
			}
		})
	}
}

// What is offered is held against all others, also those who go first by
// priority, and by nobody but plans: no agent hears of it and no slice is made.
func TestWhatIsOfferedIsHeldForPlanningOnly(t *testing.T) {
	s, p := reviewedStory(t, false)
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "8")})
	s.rest()
	s.push(map[string]string{"intents/vision/urgent.yaml": intentOf("urgent", "4") + "  priority: 900\n"})
	s.rest()
	if !strings.Contains(p.body, "place vision/train on paris/h100 (8x") || !strings.Contains(p.body, "queue vision/urgent") {
		t.Errorf("8 GPUs of 8 are offered to another, and the pull request says:\n%s", p.body)
	}
	for _, cluster := range []string{"rome", "paris"} {
		told, _ := s.r.Instructions(cluster)
		if len(told.Provide)+len(told.Consume) > 0 {
			t.Errorf("%s is told of what waits for review: %+v", cluster, told)
		}
	}
	if d := s.clusters.desired["rome"]; !d.Tree.IsZero() || len(d.Contracts) > 0 {
		t.Errorf("delivered is %+v", d)
	}
	offered := map[string]bool{}
	for _, it := range s.r.View().World.Intents {
		offered[it.Metadata.Name] = it.Offered
	}
	if !offered["train"] || offered["urgent"] {
		t.Errorf("other plans are told that held is %v", offered)
	}
	if err := p.byHand("squash", s.remote.Head(gitrepo.OfferBranch)); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if told, _ := s.r.Instructions("paris"); len(told.Provide) != 1 || told.Provide[0].Intent != "train" {
		t.Errorf("once it is merged the provider is told %+v", told.Provide)
	}
}
