//go:build e2e

package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// patience bounds every wait, on a busy machine.
const patience = 4 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildGitea) }

const (
	password = "a password of tests only"
	secret   = "a webhook secret of tests only"
)

// site is a Gitea with the repository acme/fleet and three users: acme owns it,
// broker may write to it, mallory may not.
type site struct {
	*env.GiteaServer
	t    *testing.T
	ctx  context.Context
	dir  string
	team *env.Team
}

func newSite(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	t.Cleanup(cancel)
	g, err := env.StartGitea(ctx, filepath.Join(t.TempDir(), "gitea"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Errorf("stop gitea: %v", err)
		}
	})
	s := &site{GiteaServer: g, t: t, ctx: ctx, dir: t.TempDir()}
	change := false
	for _, name := range []string{"acme", "broker", "mallory"} {
		_, _, err := s.as(g.Admin).AdminCreateUser(sdk.CreateUserOption{Username: name, Email: name + "@example.org", Password: password, MustChangePassword: &change})
		s.must(err)
	}
	_, _, err = s.as("acme").CreateRepo(sdk.CreateRepoOption{Name: "fleet", DefaultBranch: "main"})
	s.must(err)
	write := sdk.AccessModeWrite
	_, err = s.as("acme").AddCollaborator("acme", "fleet", "broker", sdk.AddCollaboratorOption{Permission: &write})
	s.must(err)
	token, _, err := s.as("broker").CreateAccessToken(sdk.CreateAccessTokenOption{Name: "daemon", Scopes: []sdk.AccessTokenScope{"write:repository", "write:issue", "read:user"}})
	s.must(err)
	s.write("token", token.Token)
	s.team, err = env.CloneTeam(ctx, s.url("acme", "acme/fleet"), filepath.Join(s.dir, "team"), "acme")
	s.must(err)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// as is the API for a user.
func (s *site) as(user string) *sdk.Client {
	s.t.Helper()
	pass := password
	if user == s.Admin {
		pass = s.Password
	}
	c, err := sdk.NewClient(s.URL, sdk.SetBasicAuth(user, pass), sdk.SetContext(s.ctx), sdk.SetGiteaVersion(""))
	s.must(err)
	return c
}

// url of a repository for git, with a user's password.
func (s *site) url(user, repo string) string {
	u, err := url.Parse(s.URL)
	s.must(err)
	u.User = url.UserPassword(user, password)
	return u.String() + "/" + repo + ".git"
}

// git runs git in the team's clone.
func (s *site) git(args ...string) string {
	s.t.Helper()
	out, err := env.Git(s.ctx, s.team.Dir, args...)
	s.must(err)
	return out
}

// branch puts files on a branch over main, replacing what it was, and returns
// its head.
func (s *site) branch(name string, files map[string]string) string {
	s.t.Helper()
	s.git("fetch", "-q", "origin")
	s.git("checkout", "-q", "-B", name, "origin/main")
	return s.more(name, files)
}

// more puts another commit on a branch that is checked out.
func (s *site) more(name string, files map[string]string) string {
	s.t.Helper()
	s.git("checkout", "-q", name)
	for path, content := range files {
		full := filepath.Join(s.team.Dir, path)
		s.must(os.MkdirAll(filepath.Dir(full), 0o755))
		s.must(os.WriteFile(full, []byte(content), 0o644))
	}
	s.git("add", "-A", "-f")
	s.git("-c", "user.name=Ada L.", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "Change "+name)
	s.git("push", "-q", "--force", "origin", name)
	return s.git("rev-parse", "HEAD")
}

// open opens a pull request of a branch.
func (s *site) open(user, head string) int64 {
	s.t.Helper()
	pr, _, err := s.as(user).CreatePullRequest("acme", "fleet", sdk.CreatePullRequestOption{Head: head, Base: "main", Title: "Ask for " + head})
	s.must(err)
	return pr.Index
}

// comment comments on a pull request.
func (s *site) comment(user string, n int64, body string) {
	s.t.Helper()
	_, _, err := s.as(user).CreateIssueComment("acme", "fleet", n, sdk.CreateIssueCommentOption{Body: body})
	s.must(err)
}

// ask puts files on a branch and opens a pull request for it.
func (s *site) ask(branch string, files map[string]string) int64 {
	s.t.Helper()
	s.branch(branch, files)
	return s.open("acme", branch)
}

// begin pushes the first commit, and waits until Gitea's API knows of it: its
// own books follow a push a moment later.
func (s *site) begin(files map[string]string) {
	s.t.Helper()
	_, err := s.team.CommitAndPush(s.ctx, "Set the fleet up", files)
	s.must(err)
	s.eventually("the forge knows of the first commit", func() error {
		repo, _, err := s.as("acme").GetRepo("acme", "fleet")
		if err != nil {
			return err
		}
		if repo.Empty {
			return errors.New("it says that the repository is empty")
		}
		_, _, err = s.as("acme").GetRepoBranch("acme", "fleet", "main")
		return err
	})
}

// eventually waits until a condition is not an error any more.
func (s *site) eventually(what string, condition func() error) {
	s.t.Helper()
	waited, err := env.Until(s.ctx, patience, condition)
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	s.t.Logf("%s: %s", what, waited.Round(time.Millisecond))
}

// comments are the broker's on a pull request that begin with a marker.
func (s *site) comments(n int64, marker string) []*sdk.Comment {
	s.t.Helper()
	list, _, err := s.as("acme").ListIssueComments("acme", "fleet", n, sdk.ListIssueCommentOptions{})
	s.must(err)
	var out []*sdk.Comment
	for _, c := range list {
		if c.Poster.UserName == "broker" && strings.HasPrefix(c.Body, marker) {
			out = append(out, c)
		}
	}
	return out
}

// says waits for a status on a pull request's newest head, and for what its
// one comment holds by then.
func (s *site) says(n int64, state sdk.StatusState, description string, comment ...string) *sdk.Comment {
	s.t.Helper()
	s.eventually(fmt.Sprintf("pull request %d is %s", n, state), func() error {
		pr, _, err := s.as("acme").GetPullRequest("acme", "fleet", n)
		if err != nil {
			return err
		}
		list, _, err := s.as("acme").ListStatuses("acme", "fleet", pr.Head.Sha, sdk.ListStatusesOption{})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("no status")
		}
		newest := list[0]
		for _, st := range list {
			if st.ID > newest.ID {
				newest = st
			}
		}
		if newest.State != state || !strings.Contains(newest.Description, description) {
			return fmt.Errorf("it is %s: %s", newest.State, newest.Description)
		}
		return nil
	})
	found := s.comments(n, marker)
	if len(found) != 1 {
		s.t.Fatalf("pull request %d has %d comments of the plan, want 1", n, len(found))
	}
	for _, want := range comment {
		if !strings.Contains(found[0].Body, want) {
			s.t.Errorf("pull request %d: no %q in the comment:\n%s", n, want, found[0].Body)
		}
	}
	return found[0]
}

// merge merges a pull request as its owner would, once the forge lets it.
func (s *site) merge(n int64, style sdk.MergeStyle) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("pull request %d is merged", n), func() error {
		ok, _, err := s.as("acme").MergePullRequest("acme", "fleet", n, sdk.MergePullRequestOption{Style: style})
		if err == nil && !ok { // who looks at it has the forge go on with a check that it left unfinished
			pr, _, look := s.as("acme").GetPullRequest("acme", "fleet", n)
			if look != nil {
				return look
			}
			err = fmt.Errorf("refused: state %s, head %s, mergeable %t", pr.State, pr.Head.Sha, pr.Mergeable)
		}
		return err
	})
}

// reserved waits for the comment that names a contract.
func (s *site) reserved(n int64, contract string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("pull request %d is told of %s", n, contract), func() error {
		for _, c := range s.comments(n, review.ReservedMarker) {
			if strings.Contains(c.Body, contract) {
				return nil
			}
		}
		return errors.New("no such comment")
	})
}
