package reconciler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// Where decisions are reviewed, the list of what is set aside is proposed with
// them: it is on the ledger once they are merged, in whatever way, and not before.
// Another daemon then leaves the piece out without trying it, the decision can be
// made again, and a change of the file proposes to take it off the list.
func TestSetAside_IsProposedWhereDecisionsAreReviewed(t *testing.T) {
	for _, way := range []string{"merge", "squash", "fast-forward"} {
		t.Run(way, func(t *testing.T) {
			s, p := reviewedStory(t, false)
			s.push(swelling(true))
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest())
			head := s.remote.Head(gitrepo.OfferBranch)
			const line = "set aside " + kdir + ", which twice ended the process that reads it (took more than 256 MiB of memory)"
			if p.open == nil || !strings.Contains(p.body, "- `"+placed+"`") || !strings.Contains(p.body, "- `"+line+"`") || strings.Contains(p.body, "Set-Aside") {
				t.Fatalf("the pull request is %+v:\n%s", p.open, p.body)
			}
			if s.record() != "" {
				t.Errorf("the list is on the ledger before anyone has merged it: %s", s.record())
			}
			s.expect(s.rest())
			s.start() // another daemon, or this one after a restart
			s.r.opts.PullRequests = p
			s.expect(s.rest())
			if got := s.remote.Head(gitrepo.OfferBranch); got != head {
				t.Errorf("the branch moved from %s to %s though nothing was decided again", head.Short(), got.Short())
			}
			if err := p.byHand(way, head); err != nil {
				t.Fatal(err)
			}
			s.expect(s.rest())
			if !strings.Contains(s.record(), "path: "+kdir) || s.contracts() != 2 {
				t.Errorf("after the merge %d files besides intents, the list is %q", s.contracts(), s.record())
			}
			again := &replay.Replayer{History: s.remote.Objects(), Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
				return gitrepo.ReadPublished(ctx, s.remote, when)
			}}
			if res, err := again.Replay(t.Context(), head); err != nil || !res.Same {
				t.Errorf("the decision made again: %+v, %v", res, err)
			}
			before := child.Default()
			child.SetDefault(child.Bounds{Memory: 1 << 20, CPU: 1}) // nothing can be built in it
			s.start()
			s.r.opts.PullRequests = p
			s.rest()
			child.SetDefault(before)
			if f := s.r.fleet; len(f.NotRead) != 1 || f.NotRead[0].Why != "took more than 256 MiB of memory" {
				t.Errorf("another daemon leaves out %v", f.NotRead)
			}
		})
	}
}

// A list that alone has changed is proposed alone, closed when it is of no use any
// more, and merged where the fleet wants that.
func TestSetAside_IsProposedAlone(t *testing.T) {
	s, p := reviewedStory(t, false)
	s.push(swelling(true))
	s.expect(s.rest())
	if p.open == nil || !strings.HasPrefix(p.open.Title, "set aside "+kdir) {
		t.Fatalf("the pull request is %+v", p.open)
	}
	head := s.remote.Head(gitrepo.OfferBranch)
	if s.expect(s.rest()); s.remote.Head(gitrepo.OfferBranch) != head {
		t.Error("time alone moved the branch")
	}
	if _, err := s.remote.Commit("main", ada, "Done", gitobj.Change{Deletes: []string{kdir + "kustomization.yaml", kdir + "i.yaml"}}); err != nil {
		t.Fatal(err)
	}
	s.expect(s.rest())
	if p.open != nil || !s.remote.Head(gitrepo.OfferBranch).IsZero() {
		t.Errorf("nothing is set aside, and %+v is open", p.open)
	}

	s.push(swelling(true))
	s.rest()
	if err := p.byHand("merge", s.remote.Head(gitrepo.OfferBranch)); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if !strings.Contains(s.record(), "path: "+kdir) || p.open != nil {
		t.Fatalf("after the merge the list is %q, and %+v is open", s.record(), p.open)
	}
	s.r.suspected.lift = []string{kdir}
	s.r.Reread()
	if _, err := s.r.Round(t.Context()); err == nil || !strings.Contains(err.Error(), "change the file") {
		t.Errorf("lift: %v", err)
	}
	s.r.suspected.lift = nil
	if _, err := s.remote.Commit("main", ada, "Done", gitobj.Change{Deletes: []string{kdir + "kustomization.yaml", kdir + "i.yaml"}}); err != nil {
		t.Fatal(err)
	}
	s.rest()
	if p.open == nil || p.open.Title != "read "+kdir+" again" {
		t.Fatalf("the pull request is %+v", p.open)
	}
	if err := p.byHand("squash", s.remote.Head(gitrepo.OfferBranch)); err != nil {
		t.Fatal(err)
	}
	if s.rest(); s.record() != "" || p.open != nil {
		t.Errorf("after the merge the list is %q, and %+v is open", s.record(), p.open)
	}
}

// Where the fleet merges its own pull requests, the list alone is merged as soon
// as the forge's rules are met.
func TestSetAside_ProposedAloneIsMergedWhenItMay(t *testing.T) {
	s, p := reviewedStory(t, true)
	s.push(swelling(true))
	if s.rest(); s.record() != "" || p.open == nil {
		t.Fatalf("merged though a check is missing: %q", p.calls)
	}
	p.ready = true
	if s.rest(); !strings.Contains(s.record(), "path: "+kdir) || p.open != nil || !slices.Contains(p.calls, "merge 1") {
		t.Errorf("not merged when it could be: %q", p.calls)
	}
}
