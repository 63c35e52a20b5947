//go:build e2e

package env_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// head is the remote branch's commit, read behind the server's back; empty
// when there is none.
func head(t *testing.T, server *env.GitServer) string {
	t.Helper()
	hash, err := env.Git(testContext(t), server.RepoDir("fleet.git"), "for-each-ref", "--format=%(objectname)", "refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func mustCommit(t *testing.T, team *env.Team, name string) string {
	t.Helper()
	commit, err := team.Commit(testContext(t), "Add "+name, map[string]string{"dir/" + name: name + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

func TestTeamsShareARepository(t *testing.T) {
	server, ctx := envtest.Git(t, "fleet.git"), testContext(t)
	ada, bob := envtest.Team(t, server.URL("fleet.git"), "ada"), envtest.Team(t, server.URL("fleet.git"), "bob")

	// A megabyte and more is sent in chunks, which CGI does not know.
	large := strings.Repeat("0123456789abcdef", 200_000)
	commit, err := ada.CommitAndPush(ctx, "Add a large file", map[string]string{"large": large, "small": "s"})
	if err != nil {
		t.Fatal(err)
	}
	if got := head(t, server); got != commit {
		t.Fatalf("the remote is at %q, want %s", got, commit)
	}
	if err := bob.Pull(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(bob.Dir, "large")); err != nil || string(got) != large {
		t.Errorf("the large file did not arrive: %v", err)
	}
	if _, err := bob.Remove(ctx, "Remove it", "large"); err != nil {
		t.Fatal(err)
	}
	if err := bob.Push(ctx); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, ada, "late")
	if err := ada.Push(ctx); err == nil {
		t.Error("a push that is no fast-forward was accepted")
	}
	if err := ada.Pull(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ada.Push(ctx); err != nil {
		t.Error(err)
	}
	if author, err := ada.Git(ctx, "log", "-1", "--format=%an <%ae>"); err != nil || author != "ada <ada@example.org>" {
		t.Errorf("got the author %q, %v", author, err)
	}
	if stats := server.Stats(); stats.Pushes < 3 || stats.Fetches < 1 || stats.Requests <= stats.Pushes+stats.Fetches {
		t.Errorf("got the counts %+v", stats)
	}
}

// Each fault, and whether a push that met it is found on the server.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		fault     env.Fault
		persisted bool
	}{
		"all refused":        {env.FaultRefuse, false},
		"push refused":       {env.FaultPushRefused, false},
		"push cut":           {env.FaultPushCut, false},
		"no room for a push": {env.FaultPushNoRoom, false},
		"push's answer lost": {env.FaultPushAnswerLost, true},
		"push's answer cut":  {env.FaultPushAnswerCut, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := envtest.Git(t, "fleet.git")
			team := envtest.Team(t, server.URL("fleet.git"), "ada")
			commit := mustCommit(t, team, "file")
			server.SetFault(c.fault)
			if err := team.Push(testContext(t)); err == nil {
				t.Error("the push succeeded")
			}
			if got := head(t, server) == commit; got != c.persisted {
				t.Errorf("persisted is %t, want %t", got, c.persisted)
			}
			server.SetFault(env.FaultNone)
			if err := team.Push(testContext(t)); err != nil {
				t.Errorf("once healed: %v", err)
			}
			if got := head(t, server); got != commit {
				t.Errorf("the remote is at %q, want %s", got, commit)
			}
		})
	}
}

func TestFailNextCountsPushesOnly(t *testing.T) {
	server := envtest.Git(t, "fleet.git")
	team := envtest.Team(t, server.URL("fleet.git"), "ada")
	mustCommit(t, team, "file")
	server.FailNext(env.FaultPushRefused, 1)
	if _, err := team.Git(testContext(t), "ls-remote", "origin"); err != nil {
		t.Errorf("a fault of pushes met a fetch: %v", err)
	}
	if err := team.Push(testContext(t)); err == nil {
		t.Error("the first push succeeded")
	}
	if err := team.Push(testContext(t)); err != nil {
		t.Errorf("the second push: %v", err)
	}
}

// A held push is on the server or not, as its fault says, while the client
// waits; then it gets its answer.
func TestHeldPushes(t *testing.T) {
	cases := map[string]struct {
		fault            env.Fault
		persisted, fails bool
	}{
		"everything held": {env.FaultHang, false, false},
		"push held":       {env.FaultPushHang, false, false},
		"answer held":     {env.FaultPushAnswerHeld, true, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := envtest.Git(t, "fleet.git")
			team := envtest.Team(t, server.URL("fleet.git"), "ada")
			commit := mustCommit(t, team, "file")
			server.SetFault(c.fault)
			answer := make(chan error, 1)
			go func() { answer <- team.Push(testContext(t)) }()
			if err := server.WaitHeld(testContext(t), 1); err != nil {
				t.Fatal(err)
			}
			if got := head(t, server) == commit; got != c.persisted {
				t.Errorf("while held, persisted is %t, want %t", got, c.persisted)
			}
			server.SetFault(env.FaultNone)
			if err := <-answer; (err != nil) != c.fails {
				t.Errorf("got the answer %v, want an error: %t", err, c.fails)
			}
			if got := head(t, server); got != commit {
				t.Errorf("in the end the remote is at %q, want %s", got, commit)
			}
		})
	}
}

func TestServerDownAndUpAtOneAddress(t *testing.T) {
	server := envtest.Git(t, "fleet.git")
	team := envtest.Team(t, server.URL("fleet.git"), "ada")
	mustCommit(t, team, "file")
	if err := server.Down(); err != nil {
		t.Fatal(err)
	}
	if err := team.Push(testContext(t)); err == nil {
		t.Error("a server that is down took a push")
	}
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	if err := team.Push(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestHTTPAuth(t *testing.T) {
	server := envtest.Git(t, "fleet.git")
	server.RequireAuth("ada", "s3cret/@")
	if _, err := env.Git(testContext(t), "", "ls-remote", server.BareURL("fleet.git")); err == nil {
		t.Error("the server answers without credentials")
	}
	team := envtest.Team(t, server.URL("fleet.git"), "ada")
	mustCommit(t, team, "file")
	if err := team.Push(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestHooks(t *testing.T) {
	server := envtest.Git(t, "fleet.git")
	repo := server.RepoDir("fleet.git")
	team := envtest.Team(t, server.URL("fleet.git"), "ada")
	mustCommit(t, team, "file")
	if err := env.InstallHook(repo, "pre-receive", "echo protected branch >&2; exit 1"); err != nil {
		t.Fatal(err)
	}
	if err := team.Push(testContext(t)); err == nil || !strings.Contains(err.Error(), "protected branch") {
		t.Errorf("got %v, want the hook's words", err)
	}
	if err := env.RemoveHook(repo, "pre-receive"); err != nil {
		t.Fatal(err)
	}
	if err := env.RemoveHook(repo, "pre-receive"); err != nil {
		t.Errorf("second removal: %v", err)
	}
	if err := team.Push(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestWebhooksFollowPushes(t *testing.T) {
	type received struct {
		header http.Header
		body   string
	}
	events := make(chan received, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		events <- received{r.Header, string(body)}
	}))
	t.Cleanup(receiver.Close)
	server := envtest.Git(t, "fleet.git")
	for _, forge := range []env.Forge{env.GitHub, env.GitLab, env.Gitea, env.Generic} {
		server.NotifyPushes(testContext(t), forge, receiver.URL, "key")
	}
	team := envtest.Team(t, server.URL("fleet.git"), "ada")
	commit := mustCommit(t, team, "file")
	if err := team.Push(testContext(t)); err != nil {
		t.Fatal(err)
	}
	headers := http.Header{}
	for range 4 {
		event := <-events
		for key, values := range event.header {
			headers[key] = append(headers[key], values...)
		}
		if !strings.Contains(event.body, commit) || !strings.Contains(event.body, `"ref":"refs/heads/main"`) {
			t.Errorf("the event names neither ref nor commit: %s", event.body)
		}
	}
	for _, key := range []string{"X-Github-Event", "X-Hub-Signature-256", "X-Gitlab-Token", "X-Gitea-Signature"} {
		if headers.Get(key) == "" {
			t.Errorf("no event has the header %s", key)
		}
	}
}

func TestSSH(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	if err := env.InitBare(ctx, filepath.Join(dir, "team", "fleet.git")); err != nil {
		t.Fatal(err)
	}
	server := envtest.SSH(t, dir)
	url := server.URL("team/fleet.git")
	team := envtest.Team(t, url, "ada", "GIT_SSH_COMMAND="+server.GitSSHCommand())
	commit := mustCommit(t, team, "file")
	if err := team.Push(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := team.Git(ctx, "ls-remote", "origin", "refs/heads/main"); err != nil || !strings.HasPrefix(got, commit) {
		t.Errorf("got %q, %v; want %s", got, err, commit)
	}

	wrongKey := strings.Replace(server.GitSSHCommand(), server.ClientKeyFile, envtest.SSH(t, dir).ClientKeyFile, 1)
	if _, err := env.CloneTeam(ctx, url, t.TempDir(), "mallory", "GIT_SSH_COMMAND="+wrongKey); err == nil {
		t.Error("a stranger's key is let in")
	}
}

// Answers stall, or end, in the middle of their body, and are whole again once the
// fault is over.
func TestGitFaultsInTheMiddleOfBodies(t *testing.T) {
	for _, fault := range []env.Fault{env.FaultCutBody, env.FaultStallBody} {
		server, ctx := envtest.Git(t, "fleet.git"), testContext(t)
		team := envtest.Team(t, server.URL("fleet.git"), "ada")
		commit := mustCommit(t, team, "a")
		whole, err := http.Get(server.URL("fleet.git") + "/info/refs?service=git-receive-pack")
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(whole.Body)
		if err = errors.Join(err, whole.Body.Close()); err != nil {
			t.Fatal(err)
		}
		server.SetFault(fault)
		part, err := http.Get(server.URL("fleet.git") + "/info/refs?service=git-receive-pack")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want)/2)
		if _, err := io.ReadFull(part.Body, got); err != nil || string(got) != string(want[:len(want)/2]) {
			t.Errorf("got %q, %v; want the first half of %q", got, err, want)
		}
		if fault == env.FaultStallBody {
			if err := server.WaitHeld(ctx, 1); err != nil {
				t.Fatal(err)
			}
			server.SetFault(env.FaultNone)
		}
		if rest, err := io.ReadAll(part.Body); err == nil || len(rest) > 0 {
			t.Errorf("after the half came %q, %v", rest, err)
		}
		_ = part.Body.Close() // it was cut off
		server.SetFault(env.FaultNone)
		if err := team.Push(ctx); err != nil {
			t.Fatal(err)
		}
		if got := head(t, server); got != commit {
			t.Errorf("the remote is at %q, want %s", got, commit)
		}
	}
}
