//go:build e2e

package forge

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/test/env"
)

const (
	marker = report.Marker
	kind   = "apiVersion: fleetbroker.io/v1alpha1\nkind: "
)

// ground is a fleet with eight H100 at 2.50 EUR/h each and a tenant that may
// spend 25 EUR/h.
var ground = map[string]string{
	"fleet.yaml":              kind + "Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n",
	"clusters/rome.yaml":      kind + "Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], delivery: none, access: {kubeconfigSecretRef: {name: rome-kubeconfig, key: kubeconfig}}}\n",
	"clusters/paris.yaml":     kind + "Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
	"tenants/vision.yaml":     kind + "Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], budget: {hourly: \"25\", currency: EUR}}\n",
	"flavors/paris/h100.yaml": kind + "Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"640\", memory: 5120Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
	"flavors/paris/h200.yaml": kind + "Flavor\nmetadata: {name: h200, namespace: paris}\nspec:\n  capacity: {cpu: \"640\", memory: 5120Gi, gpu: 16}\n  gpu: {vendor: nvidia, model: nvidia-h200, memory: 141Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"6.00\"}}\n",
}

func intent(name, gpu string) string {
	return kind + fmt.Sprintf("ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: %q}\n", name, gpu)
}

func file(name string) string { return "intents/vision/" + name + ".yaml" }

// daemon starts the real one, woken by the forge's webhooks alone unless its
// flags say otherwise.
func (s *site) daemon(flags ...string) *env.Program {
	s.t.Helper()
	var address [2]string
	for i := range address {
		a, release, err := env.ReserveAddress()
		s.must(err)
		s.t.Cleanup(release)
		address[i] = a
	}
	s.write("hooks/gitea", secret)
	p, err := env.StartProgram("daemon", s.dir, filepath.Join(bin, "fleetbroker"), append([]string{"run", "--unsigned",
		"--repo", s.URL + "/acme/fleet.git", "--git-user", "broker", "--git-password-file", filepath.Join(s.dir, "token"),
		"--state-dir", filepath.Join(s.dir, "state"), "--agents-address", "", "--operators-address", address[0],
		"--webhooks-address", address[1], "--webhooks-tls=false", "--webhook-secrets-dir", filepath.Join(s.dir, "hooks"),
		"--forge", "gitea", "--forge-token-file", filepath.Join(s.dir, "token"), "--forge-url", s.URL,
		"--review-refresh", "1s", "--poll-interval", "10m"}, flags...)...)
	s.must(err)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			log, _ := os.ReadFile(p.LogFile())
			s.t.Logf("the daemon's log:\n%s", log)
		}
		if err := p.Stop(); err != nil {
			s.t.Errorf("stop the daemon: %v", err)
		}
	})
	_, _, err = s.as("acme").CreateRepoHook("acme", "fleet", sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Active: true, Events: []string{"push", "pull_request", "pull_request_sync", "pull_request_comment"},
		Config: map[string]string{"url": "http://" + address[1] + "/hooks/gitea", "content_type": "json", "secret": secret},
	})
	s.must(err)
	s.t.Run("a webhook without the secret is refused", func(t *testing.T) {
		s.eventually("the port answers", func() error {
			req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, "http://"+address[1]+"/hooks/gitea", bytes.NewReader([]byte("{}")))
			if err != nil {
				return err
			}
			req.Header.Set("X-Gitea-Signature", strings.Repeat("00", 32))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("it is answered %s", resp.Status)
			}
			return nil
		})
	})
	return p
}

func TestClientConforms(t *testing.T) {
	s := newSite(t)
	s.begin(map[string]string{"a.yaml": "0\n2\n3\n4\n5\n"})
	branches := []string{"one", "two", "three"}
	for _, b := range branches {
		s.branch(b, map[string]string{"a.yaml": b + "\n2\n3\n4\n5\n"})
	}
	f, err := forges.Open(forge.Config{Kind: forge.Gitea, TokenFile: filepath.Join(s.dir, "token")}, s.URL+"/acme/fleet.git")
	s.must(err)
	forgetest.Conform(t, f, forgetest.Repo{
		Base: "main", Branches: branches, Path: "a.yaml",
		Push: func(branch string) string { return s.more(branch, map[string]string{"b.yaml": "more"}) },
		Say: func(n int64, body string) {
			_, _, err := s.as("mallory").CreateIssueComment("acme", "fleet", n, sdk.CreateIssueCommentOption{Body: body})
			s.must(err)
		},
		Comments: func(n int64) []string {
			list, _, err := s.as("acme").ListIssueComments("acme", "fleet", n, sdk.ListIssueCommentOptions{})
			s.must(err)
			var out []string
			for _, c := range list {
				out = append(out, c.Body)
			}
			return out
		},
	})
}

func TestPullRequests(t *testing.T) {
	s := newSite(t)
	s.begin(ground)
	s.daemon()
	// main takes only what the plan passes.
	_, _, err := s.as("acme").CreateBranchProtection("acme", "fleet", sdk.CreateBranchProtectionOption{
		RuleName: "main", EnablePush: true, EnableStatusCheck: true, StatusCheckContexts: []string{"fleetbroker/plan"}, BlockAdminMergeOverride: true,
	})
	s.must(err)
	first := s.ask("first", map[string]string{
		file("good"): intent("good", "H100:4"), file("bad"): strings.Replace(intent("bad", "H100:1"), "cpu:", "cpus:", 1),
		file("dear"): intent("dear", "H200:16") + "  queue: {policy: fail}\n",
	})
	comment := s.says(first, sdk.StatusFailure, "1 place, 2 refuse", "| + place | vision/good | paris/h100 -> rome | +10.00 |",
		"x refuse | vision/bad", "cpus", "vision/dear", "1 costs more than is left of its tenant's hourly budget", "| vision | 0.00 | 10.00 |", "15.00 of 25.00 EUR/h")
	s.lines(first, 1, "cpus")
	if ok, _, err := s.as("acme").MergePullRequest("acme", "fleet", first, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge}); ok && err == nil {
		t.Fatal("the forge merges what the required check refuses")
	}
	s.git("rm", "-q", file("bad"), file("dear"))
	s.more("first", nil)
	again := s.says(first, sdk.StatusSuccess, "1 place (+10.00 EUR/h)", "**Plan: 1 place")
	if again.ID != comment.ID || strings.Contains(again.Body, "refuse") {
		t.Errorf("the comment was not brought up to date in place: %d and %d\n%s", comment.ID, again.ID, again.Body)
	}
	s.lines(first, 0, "")

	// Two want the last four, and a third one waits for what they leave.
	two := s.ask("two", map[string]string{file("two"): intent("two", "H100:4")})
	three := s.ask("three", map[string]string{file("three"): intent("three", "H100:4")})
	s.says(two, sdk.StatusSuccess, "1 place")
	s.says(three, sdk.StatusSuccess, "1 place")
	s.merge(first, sdk.MergeStyleMerge)
	s.reserved(first, "vision-good-0-")
	base := s.git("ls-remote", s.url("acme", "acme/fleet"), "refs/heads/main")[:7]
	s.says(two, sdk.StatusSuccess, "1 place (+10.00 EUR/h); at base "+base)
	s.merge(three, sdk.MergeStyleSquash)
	s.reserved(three, "vision-three-0-")
	s.says(two, sdk.StatusSuccess, "1 queue", "too few GPUs free")
	s.merge(two, sdk.MergeStyleRebase)
	s.reserved(two, "in the queue")
}

// lines waits for so many comments on lines, which hold a text.
func (s *site) lines(n int64, want int, text string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d comments on lines", want), func() error {
		reviews, _, err := s.as("acme").ListPullReviews("acme", "fleet", n, sdk.ListPullReviewsOptions{})
		if err != nil {
			return err
		}
		found := 0
		for _, r := range reviews {
			list, _, err := s.as("acme").ListPullReviewComments("acme", "fleet", n, r.ID)
			if err != nil {
				return err
			}
			for _, c := range list {
				if !strings.Contains(c.Body, text) {
					return fmt.Errorf("one says %q", c.Body)
				}
				found++
			}
		}
		if found != want {
			return fmt.Errorf("there are %d", found)
		}
		return nil
	})
}

// What strangers send is shown and harms nobody.
func TestHostile(t *testing.T) {
	s := newSite(t)
	s.begin(ground)
	s.daemon()
	_, _, err := s.as("mallory").CreateFork("acme", "fleet", sdk.CreateForkOption{})
	s.must(err)
	s.git("remote", "add", "fork", s.url("mallory", "mallory/fleet"))
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("intents/vision/many/%d.yaml", i)] = fmt.Sprint(i)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	for name, c := range map[string]struct {
		files   map[string]string
		comment string
	}{
		"many":      {many, "entries more than the inputs, at most 2000 are read"},
		"bomb":      {map[string]string{file("bomb"): bomb}, "intents/vision/bomb.yaml"},
		"generated": {map[string]string{"contracts/vision/aa/a/vision-a-0-aaaaaaaa.yaml": kind + "Contract\n"}, "written by fleetbroker alone"},
		"secret":    {map[string]string{"clusters/evil.yaml": strings.Replace(ground["clusters/rome.yaml"], "name: rome}", "name: evil}", 1)}, "is that of cluster rome"},
		"remote":    {map[string]string{"intents/vision/k/kustomization.yaml": "resources: [https://example.org/evil.git]\n"}, "intents/vision/k/"},
		"tricks":    {map[string]string{"intents/vision/..%2f..%2ffleet.yaml": "x", "intents/vision/\u202eevil.yaml": "<script>alert(1)</script>"}, "symbolic links are not followed"},
	} {
		s.git("checkout", "-q", "-B", name, "origin/main")
		for path, content := range c.files {
			full := filepath.Join(s.team.Dir, path)
			s.must(os.MkdirAll(filepath.Dir(full), 0o755))
			s.must(os.WriteFile(full, []byte(content), 0o644))
		}
		if name == "tricks" {
			s.must(os.Symlink("/etc/passwd", filepath.Join(s.team.Dir, file("link"))))
		}
		s.git("add", "-A", "-f")
		s.git("-c", "user.name=Mallory", "-c", "user.email=m@example.org", "commit", "-q", "-m", name)
		s.git("push", "-q", "fork", name)
		n := s.open("mallory", "mallory:"+name)
		plan := "/plan " + strings.TrimSpace(s.git("rev-parse", "HEAD"))
		s.eventually("the fork waits for a writer", func() error {
			list, _, err := s.as("acme").ListStatuses("acme", "fleet", strings.TrimPrefix(plan, "/plan "), sdk.ListStatusesOption{})
			if err == nil && (len(list) == 0 || !strings.Contains(list[0].Description, "someone with write access comments: "+plan)) {
				err = fmt.Errorf("statuses %v", list)
			}
			return err
		})
		s.comment("mallory", n, plan) // may not write, and is not heard
		s.comment("acme", n, "> "+plan)
		s.comment("acme", n, plan)
		s.says(n, sdk.StatusFailure, "", c.comment)
	}
	// The daemon is well: what is asked for properly is reserved.
	good := s.ask("good", map[string]string{file("good"): intent("good", "H100:4")})
	s.says(good, sdk.StatusSuccess, "1 place")
	s.merge(good, sdk.MergeStyleMerge)
	s.reserved(good, "vision-good-0-")
}

// Who may write is asked of Gitea itself: in a person's repository by whom
// issues can be assigned to, which in an organization's are readers too.
func TestWhoNamesAForksHead(t *testing.T) {
	s := newSite(t)
	s.begin(map[string]string{"a.yaml": "1\n"})
	s.branch("ask", map[string]string{"a.yaml": "2\n"})
	head := strings.TrimSpace(s.git("rev-parse", "HEAD"))
	client := func(repo string) forge.Forge {
		f, err := forges.Open(forge.Config{Kind: forge.Gitea, TokenFile: filepath.Join(s.dir, "token")}, s.URL+"/"+repo+".git")
		s.must(err)
		return f
	}
	say := func(user, owner string, n int64, body string) int64 {
		c, _, err := s.as(user).CreateIssueComment(owner, "fleet", n, sdk.CreateIssueCommentOption{Body: body})
		s.must(err)
		return c.ID
	}
	named := func(f forge.Forge, n int64) string {
		t.Helper()
		got, err := f.Named(s.ctx, n, head)
		s.must(err)
		return got.By
	}
	n, own := s.open("acme", "ask"), client("acme/fleet")
	say("mallory", "acme", n, "/plan "+head)
	say("broker", "acme", n, "/plan "+head)
	edited := say("acme", "acme", n, "well")
	if by := named(own, n); by != "" {
		t.Errorf("named by %s, who may not write or is ourselves", by)
	}
	edits := 0
	s.eventually("an edit is a second later", func() error { // Gitea's times are whole seconds, and the same text is no edit
		edits++
		c, _, err := s.as("acme").EditIssueComment("acme", "fleet", edited, sdk.EditIssueCommentOption{Body: fmt.Sprintf("/plan %s\n%d", head, edits)})
		if err == nil && c.Updated.Sub(c.Created) < 2*time.Second {
			err = fmt.Errorf("it is %s later", c.Updated.Sub(c.Created))
		}
		return err
	})
	if by := named(own, n); by != "" {
		t.Errorf("named by %s in an edited comment", by)
	}
	gone := say("acme", "acme", n, "/plan "+head)
	if by := named(own, n); by != "acme" {
		t.Errorf("named by %q, want the owner", by)
	}
	_, err := s.as("acme").DeleteIssueComment("acme", "fleet", gone)
	s.must(err)
	if by := named(own, n); by != "" {
		t.Errorf("named by %s in a deleted comment", by)
	}

	// An organization where mallory may read.
	_, _, err = s.as("acme").CreateOrg(sdk.CreateOrgOption{Name: "guild", Visibility: sdk.VisibleTypePublic})
	s.must(err)
	_, _, err = s.as("acme").CreateOrgRepo("guild", sdk.CreateRepoOption{Name: "fleet", DefaultBranch: "main"})
	s.must(err)
	for _, branch := range []string{"main", "ask"} {
		s.git("push", "-q", s.url("acme", "guild/fleet"), "origin/"+branch+":refs/heads/"+branch)
	}
	team, _, err := s.as("acme").CreateTeam("guild", sdk.CreateTeamOption{
		Name: "readers", Permission: sdk.AccessModeRead, IncludesAllRepositories: true, Units: []sdk.RepoUnitType{sdk.RepoUnitCode, sdk.RepoUnitIssues, sdk.RepoUnitPulls},
	})
	s.must(err)
	_, err = s.as("acme").AddTeamMember(team.ID, "mallory")
	s.must(err)
	write := sdk.AccessModeWrite
	_, err = s.as("acme").AddCollaborator("guild", "fleet", "broker", sdk.AddCollaboratorOption{Permission: &write})
	s.must(err)
	var pr *sdk.PullRequest
	s.eventually("the forge knows of the branches", func() error {
		pr, _, err = s.as("acme").CreatePullRequest("guild", "fleet", sdk.CreatePullRequestOption{Head: "ask", Base: "main", Title: "Ask"})
		return err
	})
	of := client("guild/fleet")
	say("mallory", "guild", pr.Index, "/plan "+head)
	if got, err := of.Named(s.ctx, pr.Index, head); err == nil || got.By != "" || !strings.Contains(err.Error(), "administrators alone may ask") {
		t.Errorf("%+v, %v, want a refusal with its remedy", got, err)
	}
	admin := sdk.AccessModeAdmin
	_, err = s.as("acme").AddCollaborator("guild", "fleet", "broker", sdk.AddCollaboratorOption{Permission: &admin})
	s.must(err)
	if by := named(of, pr.Index); by != "" {
		t.Errorf("named by %s, who may read", by)
	}
	say("acme", "guild", pr.Index, "/plan "+head)
	if by := named(of, pr.Index); by != "acme" {
		t.Errorf("named by %q, want acme", by)
	}
}

// A ledger that the daemon may not write is said to be so, with the remedy.
func TestProtectedLedger(t *testing.T) {
	s := newSite(t)
	s.begin(ground)
	_, _, err := s.as("acme").CreateBranchProtection("acme", "fleet", sdk.CreateBranchProtectionOption{
		RuleName: "ledger", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{"acme"},
	})
	s.must(err)
	s.branch("ledger", nil)
	d := s.daemon()
	n := s.ask("good", map[string]string{file("good"): intent("good", "H100:4")})
	s.merge(n, sdk.MergeStyleMerge)
	s.eventually("the refusal is told", func() error {
		log, err := os.ReadFile(d.LogFile())
		if err == nil && !strings.Contains(string(log), "protected") {
			err = fmt.Errorf("not yet in the log:\n%s", log)
		}
		return err
	})
	if got := s.comments(n, "<!-- fleetbroker:reserved -->"); len(got) > 0 {
		t.Errorf("told of contracts that the ledger does not have: %s", got[0].Body)
	}
	_, _, err = s.as("acme").EditBranchProtection("acme", "fleet", "ledger", sdk.EditBranchProtectionOption{PushWhitelistUsernames: []string{"acme", "broker"}})
	s.must(err)
	s.branch("main", map[string]string{file("more"): intent("more", "H100:1")}) // a refusal is not asked again before something is new
	s.reserved(n, "vision-good-0-")
}
