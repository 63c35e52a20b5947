//go:build e2e

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// base is the install base, seen from here.
const base = "../../../fleet-repo-template/install"

// patience bounds every wait.
const patience = 2 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// fleet is a rig whose programs have the install base's rights alone: rome is
// the consumer and the daemon's own cluster, paris the provider.
type fleet struct {
	*rig.Rig
	t    *testing.T
	ctx  context.Context
	team *env.Team
}

func start(t *testing.T) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	r, err := rig.Start(ctx, rig.Options{
		Dir: t.TempDir(), Bin: bin, Consumers: []string{"rome"}, Audit: true, Signed: true,
		Providers: map[string][]env.GPUNode{"paris": {{Name: "paris-1", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s", "--leader-election-namespace", "fleetbroker"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Rig: r, t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	if f.team, err = r.Team(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	for cluster, bases := range map[string][]string{"rome": {"broker", "consumer"}, "paris": {"agent", "provider"}} {
		for _, b := range bases { // named for this fleet
			if out, err := r.Clusters[cluster].Kubectl(ctx, ".", "apply", "-k", filepath.Join(r.Laid, "install", b)); err != nil {
				t.Fatalf("apply install/%s to %s: %v\n%s", b, cluster, err, out)
			}
		}
	}
	f.actAs("kubeconfigs", "rome", "fleetbroker")
	f.actAs("kubeconfigs", "paris", "fleetbroker")
	f.actAs("agents", "paris", "fleet-agent")
	return f
}

// actAs gives daemons (kubeconfigs) or agents a ServiceAccount's kubeconfig of a
// cluster instead of the administrator's.
func (f *fleet) actAs(who, cluster, account string) {
	f.t.Helper()
	kubeconfig, err := f.Clusters[cluster].KubeconfigForServiceAccount(f.ctx, "fleetbroker", account)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, who, cluster+".kubeconfig"), kubeconfig, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// logs shows what the programs said last.
func (f *fleet) logs() {
	paths, err := filepath.Glob(filepath.Join(f.Dir, "logs", "*.log"))
	if err != nil {
		f.t.Error(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.t.Error(err)
			continue
		}
		lines := strings.Split(string(text), "\n")
		f.t.Logf("%s:\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

func (f *fleet) eventually(what string, check func() error) {
	f.t.Helper()
	if _, err := env.Until(f.ctx, patience, check); err != nil {
		f.t.Fatalf("not seen: %s: %v", what, err)
	}
}

// push commits files on the newest main; an empty content removes the file.
func (f *fleet) push(message string, files map[string]string) {
	f.t.Helper()
	if _, err := f.team.Git(f.ctx, "pull", "-q", "--rebase", "origin", env.DefaultBranch); err != nil {
		f.t.Fatal(err)
	}
	write := map[string]string{}
	for path, content := range files {
		if content != "" {
			write[path] = content
		} else if err := os.Remove(filepath.Join(f.team.Dir, path)); err != nil {
			f.t.Fatal(err)
		}
	}
	if _, err := f.team.CommitAndPush(f.ctx, message, write); err != nil {
		f.t.Fatal(err)
	}
}

// ledger is a file of the ledger branch, by a glob of its path.
func (f *fleet) ledger(args ...string) (string, error) {
	return f.git(append([]string{"-C", f.Git.RepoDir(rig.Repo)}, args...)...)
}

func (f *fleet) git(args ...string) (string, error) {
	out, err := exec.CommandContext(f.ctx, "git", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}
