//go:build e2e

package guide

import (
	"context"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// The daemon's account on the git server.
const (
	user  = "fleetbroker"
	token = "a token of the git server"
)

// follower is somebody who follows the page: a shell whose variables and directory last
// from block to block, in a home of its own, with a context for each of three clusters.
type follower struct {
	t    *testing.T
	ctx  context.Context
	page *page
	// The daemon's cluster, the consumer and the provider.
	hub, rome, paris *env.Cluster
	// agents is where agents reach the daemon, host:port.
	agents string
	// also are further replacements, old and new.
	also []string

	// hooked are the clusters whose agent is the admission webhook.
	hooked  map[string]bool
	running []worker
	home    string
	path    string   // PATH at the start
	standIn []string // of the page: old and new
}

// worker is a program that runs in place of a workload's pod.
type worker struct {
	*env.Program

	cluster    *env.Cluster
	kind, name string
}

// start is with servers of a version, "" for the newest.
func start(t *testing.T, p *page, version string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	t.Cleanup(cancel)
	f := &follower{t: t, ctx: ctx, page: p, home: t.TempDir(), path: os.Getenv("PATH")}
	clusters := envtest.Clusters(t, env.ClusterOptions{Name: "hub", Kubernetes: version}, env.ClusterOptions{Name: "rome", Kubernetes: version}, env.ClusterOptions{Name: "paris", Kubernetes: version})
	f.hub, f.rome, f.paris = clusters[0], clusters[1], clusters[2]
	for _, c := range clusters[1:] { // Liqo, as far as it can be installed without pods
		if err := env.InstallLiqoCRDs(ctx, c.Config); err != nil {
			t.Fatal(err)
		}
		f.must(c.Kubectl(ctx, "", "create", "namespace", "liqo"))
	}
	git := envtest.Git(t, repo)
	git.RequireAuth(user, token)
	f.agents = byName(t, f.address())
	f.standIn = []string{"https://git.example.org/acme/fleet.git", git.BareURL(repo), "broker.example.org:8443", f.agents, "broker.example.org", "localhost"}
	for _, program := range []string{"kubectl", "helm"} {
		at, err := tools.Find(ctx, program, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		f.path = filepath.Dir(at) + ":" + f.path
	}
	f.contexts(clusters)
	f.gitConfig(git.BareURL(repo))
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	f.put(filepath.Join(f.home, ".state"), "cd "+root+"\n")
	return f
}

// contexts writes the kubeconfig: one context for each cluster, of which the first is the current.
func (f *follower) contexts(clusters []*env.Cluster) {
	f.t.Helper()
	config := clientcmdapi.NewConfig()
	for _, c := range clusters {
		text, err := c.KubeconfigFor("admin", "system:masters")
		if err != nil {
			f.t.Fatal(err)
		}
		one, err := clientcmd.Load(text)
		if err != nil {
			f.t.Fatal(err)
		}
		at := one.Contexts[one.CurrentContext]
		config.Clusters[c.Name], config.AuthInfos[c.Name] = one.Clusters[at.Cluster], one.AuthInfos[at.AuthInfo]
		config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	}
	config.CurrentContext = clusters[0].Name
	if err := clientcmd.WriteToFile(*config, filepath.Join(f.home, ".kube", "config")); err != nil {
		f.t.Fatal(err)
	}
}

// gitConfig is git's, of somebody who may push.
func (f *follower) gitConfig(remote string) {
	f.t.Helper()
	u, err := url.Parse(remote)
	if err != nil {
		f.t.Fatal(err)
	}
	u.Path, u.User = "", url.UserPassword(user, token)
	f.put(filepath.Join(f.home, ".git-credentials"), u.String()+"\n")
	f.put(filepath.Join(f.home, ".gitconfig"), "[credential]\n\thelper = store\n[user]\n\tname = Ada\n\temail = ada@example.org\n")
}

func (f *follower) put(path, content string) {
	f.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// file writes a file of the fleet repo.
func (f *follower) file(name, content string) {
	f.t.Helper()
	f.put(filepath.Join(f.home, "fleet", name), content)
}

// run runs the one block that has a text, and returns what it printed.
func (f *follower) run(has string) string {
	f.t.Helper()
	b, err := f.page.block(has)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.bash(b.text)
}

// each runs the lines of a block one by one, with whatever exit code, and returns each with
// what it printed.
func (f *follower) each(has string) (out []string) {
	f.t.Helper()
	b, err := f.page.block(has)
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(b.text) {
		out = append(out, line+f.bash("{ "+line+"} || echo \"exit code $?\"\n"))
	}
	return out
}

// named runs a command of the page's text, with kubectl as given.
func (f *follower) named(command, kubectl string) {
	f.t.Helper()
	f.page.ran[command] = true
	if rest, ok := strings.CutPrefix(command, "kubectl "); ok {
		command = kubectl + " " + rest
	}
	f.bash(command + "\n")
}

// bash runs commands as the page has them, with its stand-ins filled in.
func (f *follower) bash(script string) string {
	f.t.Helper()
	script = strings.NewReplacer(append(f.also, f.standIn...)...).Replace(script)
	state := filepath.Join(f.home, ".state")
	cmd := exec.CommandContext(f.ctx, "bash", "-euo", "pipefail", "-c", ". "+state+"\nset -a\n"+script+"\nset +a\n{ export -p; printf 'cd %q\\n' \"$PWD\"; } > "+state)
	environment := map[string]string{"HOME": f.home, "PATH": f.path, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}
	for _, keep := range []string{"CGO_ENABLED", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} {
		if value, ok := os.LookupEnv(keep); ok {
			environment[keep] = value
		}
	}
	maps.Copy(environment, f.goDirs())
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}

// goDirs are the caches of Go, which are below the home that was left.
func (f *follower) goDirs() map[string]string {
	f.t.Helper()
	out, err := exec.CommandContext(f.ctx, "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		f.t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	return map[string]string{"GOCACHE": dirs[0], "GOMODCACHE": dirs[1]}
}

func (f *follower) must(out string, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v\n%s", err, out)
	}
}
