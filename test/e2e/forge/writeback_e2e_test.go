//go:build e2e

package forge

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// reviewed is a fleet whose decisions go by pull request into a branch.
func reviewed(branch string, merge bool) string {
	return strings.Replace(ground["fleet.yaml"], "{inputs: main, branch: ledger", fmt.Sprintf("{mode: pull-request, merge: %t, inputs: main, branch: %s", merge, branch), 1)
}

// decisions waits for the daemon's one pull request, in which a text stands.
func (s *site) decisions(base, text string) *sdk.PullRequest {
	s.t.Helper()
	var found *sdk.PullRequest
	s.eventually("the daemon asks for "+text, func() error {
		list, _, err := s.as("acme").ListRepoPullRequests("acme", "fleet", sdk.ListPullRequestsOptions{State: sdk.StateOpen})
		if err != nil {
			return err
		}
		found = nil
		for _, pr := range list {
			if pr.Head.Ref != gitrepo.OfferBranch {
				continue
			}
			if found != nil {
				s.t.Fatalf("it has two open: %d and %d", found.Index, pr.Index)
			}
			found = pr
		}
		switch {
		case found == nil:
			return errors.New("there is none")
		case found.Base.Ref != base:
			return fmt.Errorf("it goes into %s", found.Base.Ref)
		case !strings.Contains(found.Body, text):
			return fmt.Errorf("it says %q", found.Body)
		}
		return nil
	})
	return found
}

// passes puts the required check of a commit on success.
func (s *site) passes(commit string) {
	s.t.Helper()
	_, _, err := s.as("acme").CreateStatus("acme", "fleet", commit, sdk.CreateStatusOption{State: sdk.StatusSuccess, Context: "policy"})
	s.must(err)
}

// merged waits until a pull request is.
func (s *site) merged(n int64) *sdk.PullRequest {
	s.t.Helper()
	var pr *sdk.PullRequest
	s.eventually(fmt.Sprintf("pull request %d is merged by somebody", n), func() (err error) {
		if pr, _, err = s.as("acme").GetPullRequest("acme", "fleet", n); err == nil && !pr.HasMerged {
			err = errors.New("it is not")
		}
		return err
	})
	return pr
}

// onLedger counts the contracts on a branch.
func (s *site) onLedger(branch string) int {
	s.t.Helper()
	s.git("fetch", "-q", "origin")
	n := 0
	for _, name := range strings.Fields(s.git("ls-tree", "-r", "--name-only", "origin/"+branch)) {
		if strings.HasPrefix(name, "contracts/") && !strings.HasSuffix(name, "_intent.yaml") && !strings.Contains(name, "/spend-") {
			n++
		}
	}
	return n
}

// Decisions go by pull request: one, kept up to date, merged by the daemon when
// the required check passes and by a person's squash, and reserved then only.
func TestDecisionsByPullRequest(t *testing.T) {
	s := newSite(t)
	files := maps.Clone(ground)
	files["fleet.yaml"] = reviewed("ledger", true)
	files["tenants/vision.yaml"] = strings.Replace(ground["tenants/vision.yaml"], `"25"`, `"50"`, 1)
	s.begin(files)
	_, _, err := s.as("acme").CreateBranchProtection("acme", "fleet", sdk.CreateBranchProtectionOption{
		RuleName: "ledger", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{"broker"},
		EnableStatusCheck: true, StatusCheckContexts: []string{"policy"}, BlockAdminMergeOverride: true,
	})
	s.must(err)
	s.daemon("--poll-interval", "2s") // nothing calls when a check passes

	first := s.ask("first", map[string]string{file("first"): intent("first", "H100:4")})
	s.merge(first, sdk.MergeStyleMerge)
	ours := s.decisions("ledger", "place vision/first on paris/h100")
	second := s.ask("second", map[string]string{file("second"): intent("second", "H100:4")})
	s.merge(second, sdk.MergeStyleMerge)
	both := s.decisions("ledger", "place vision/second on paris/h100")
	if both.Index != ours.Index || !strings.Contains(both.Body, "place vision/first on paris/h100") {
		t.Errorf("pull request %d was opened beside %d, or the first decision went: %s", both.Index, ours.Index, both.Body)
	}
	if n := s.onLedger("ledger"); n != 0 {
		t.Errorf("%d contracts are on the ledger before the review", n)
	}
	if got := s.comments(first, "<!-- fleetbroker:reserved -->"); len(got) > 0 {
		t.Errorf("told of contracts that nobody has merged: %s", got[0].Body)
	}
	// Others plan with what waits: the eight GPUs are gone.
	third := s.ask("third", map[string]string{file("third"): intent("third", "H100:4") + "  priority: 900\n"})
	s.says(third, sdk.StatusSuccess, "1 queue")

	s.passes(both.Head.Sha)
	if pr := s.merged(ours.Index); pr.MergedBy == nil || pr.MergedBy.UserName != "broker" {
		t.Errorf("it was merged by %+v", pr.MergedBy)
	}
	s.reserved(first, "vision-first-0-")
	s.reserved(second, "vision-second-0-")
	if n := s.onLedger("ledger"); n != 2 {
		t.Errorf("%d contracts are on the ledger, want 2", n)
	}

	s.branch("main", map[string]string{"fleet.yaml": reviewed("ledger", false), file("more"): intent("more", "H200:1")})
	next := s.decisions("ledger", "place vision/more on paris/h200")
	s.passes(next.Head.Sha)
	s.merge(next.Index, sdk.MergeStyleSquash)
	s.eventually("the squash is taken over", func() error {
		if n := s.onLedger("ledger"); n != 3 {
			return fmt.Errorf("%d contracts are on the ledger, want 3", n)
		}
		return nil
	})
	log := s.git("log", "-1", "--format=%s", "origin/ledger")
	if strings.Contains(log, "undo") {
		t.Errorf("the squash was undone: %s", log)
	}
}

// On one branch for inputs and ledger its own pull request passes the check that
// all others need.
func TestDecisionsOnOneBranch(t *testing.T) {
	s := newSite(t)
	files := maps.Clone(ground)
	files["fleet.yaml"] = reviewed("main", true)
	s.begin(files)
	s.daemon("--poll-interval", "2s")
	_, _, err := s.as("acme").CreateBranchProtection("acme", "fleet", sdk.CreateBranchProtectionOption{
		RuleName: "main", EnablePush: true, EnableStatusCheck: true, StatusCheckContexts: []string{"fleetbroker/plan"}, BlockAdminMergeOverride: true,
	})
	s.must(err)
	n := s.ask("good", map[string]string{file("good"): intent("good", "H100:4")})
	s.says(n, sdk.StatusSuccess, "1 place")
	s.merge(n, sdk.MergeStyleSquash)
	s.reserved(n, "vision-good-0-")
	if n := s.onLedger("main"); n != 1 {
		t.Errorf("%d contracts are on the branch, want 1", n)
	}
}
