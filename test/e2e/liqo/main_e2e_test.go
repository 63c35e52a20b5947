//go:build e2e

package liqo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools, liqo.Build, env.Isolate) }

// atOnce bounds how many fleets run at once. Most of a test is waiting for Liqo,
// which looks at some things every ten seconds; a fleet takes 2 GB of memory.
var atOnce = make(chan struct{}, 2)

// fleet is a running fleet with real Liqo.
type fleet struct {
	*rigtest.Fleet
	t      *testing.T
	ctx    context.Context
	daemon *rig.Daemon
	agents map[string]*env.Program
}

// start brings up the providers and the consumer rome, with agents and daemon.
func start(t *testing.T, providers ...string) *fleet {
	t.Helper()
	return startWith(t, func(*rig.Options) {}, func(*fleet) {}, providers...)
}

// startWith is start with other options, and something to do before programs of
// ours run.
func startWith(t *testing.T, options func(*rig.Options), before func(*fleet), providers ...string) *fleet {
	t.Helper()
	t.Parallel()
	atOnce <- struct{}{}
	t.Cleanup(func() { <-atOnce })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	o := rig.Options{
		Dir: t.TempDir(), Bin: bin, Liqo: true, Consumers: []string{"rome"}, Providers: map[string][]env.GPUNode{},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
		Inputs: map[string]string{
			"tenants/nlp.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [nlp]}\n",
		},
	}
	for _, name := range providers {
		pool := map[string]string{"fleetbroker.io/pool": "h100"}
		o.Providers[name] = []env.GPUNode{{Name: name + "-gpu", GPUs: 8, Labels: pool}, {Name: name + "-other"}}
	}
	options(&o)
	began := time.Now()
	f := &fleet{t: t, ctx: ctx, agents: map[string]*env.Program{}}
	f.Fleet = rigtest.Start(ctx, t, o, func(r *rigtest.Fleet) {
		f.Fleet = r
		f.logs()
	})
	t.Logf("%d clusters with Liqo: %s", len(f.Clusters), time.Since(began).Round(time.Millisecond))
	before(f)
	for _, name := range providers {
		f.run(name, "apply", "-f", filepath.Join(f.here(), classDefault))
	}
	var err error
	if f.daemon, err = f.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	for name := range f.Clusters {
		if f.agents[name], err = f.Agent(ctx, name, f.daemon); err != nil {
			t.Fatal(err)
		}
	}
	f.Eventually("the providers sell and enforce", func() error {
		market, err := f.daemon.Market(ctx)
		if err == nil && strings.Count(market, "class: fleetbroker") < len(providers) {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	return f
}

// classDefault closes Liqo's own slice class on a provider.
const classDefault = "../../../fleet-repo-template/install/provider/class-default.yaml"

// here is this package's directory.
func (f *fleet) here() string {
	dir, err := os.Getwd()
	if err != nil {
		f.t.Fatal(err)
	}
	return dir
}

// kubectl runs kubectl on a cluster.
func (f *fleet) kubectl(cluster string, args ...string) (string, error) {
	out, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, args...)
	return strings.TrimSpace(out), err
}

// apply applies a manifest on a cluster.
func (f *fleet) apply(cluster, manifest string) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.kubectl(cluster, "apply", "-f", file); err != nil {
		f.t.Fatal(err)
	}
}

// says waits until kubectl on a cluster prints exactly that.
func (f *fleet) says(cluster, want string, args ...string) {
	f.t.Helper()
	f.Eventually(cluster+": kubectl "+strings.Join(args, " "), func() error {
		got, err := f.kubectl(cluster, args...)
		if err == nil && got != want {
			err = fmt.Errorf("printed %q, want %q", got, want)
		}
		return err
	})
}

// ask reads a page of the daemon's operators' port.
func (f *fleet) ask(path string) (string, error) {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+f.daemon.Operators+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

// state is a held contract as the daemon sees it now.
func (f *fleet) state(contract string) (wire.ContractState, error) {
	var page struct{ Data view.List[view.ContractRow] }
	text, err := f.ask(wire.ContractsPath)
	if err == nil {
		err = json.Unmarshal([]byte(text), &page)
	}
	for _, s := range page.Data.Items {
		if s.Name == contract {
			return s.ContractState, err
		}
	}
	return wire.ContractState{}, errors.Join(err, fmt.Errorf("contract %s is not held: %s", contract, text))
}

func (f *fleet) logs() {
	for name := range f.Clusters {
		out, err := f.kubectl(name, "get", "resourceslices.authentication.liqo.io,quotas.offloading.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io,"+
			"tenants.authentication.liqo.io,nodes,deployments,pods", "-A", "-o", "wide")
		f.t.Logf("%s: %v\n%s", name, err, out)
		out, err = f.kubectl(name, "get", "nodes,pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.liqo\.io/remote-unavailable} {range .status.conditions[*]}{.type}={.status}/{.reason} at {.lastTransitionTime}, {end}{"\n"}{end}`)
		f.t.Logf("%s: %v\n%s", name, err, out)
		f.Log(filepath.Join(f.Dir, "clusters", name, "kube-controller-manager.log"), 3000)
		files, _ := filepath.Glob(filepath.Join(f.Dir, "clusters", name, "liqo", "*.log"))
		for _, file := range files {
			f.Log(file, 2000)
		}
	}
	for _, p := range f.agents {
		f.Log(p.LogFile(), 4000)
	}
	if f.daemon != nil {
		f.Log(f.daemon.LogFile(), 6000)
	}
}

// run runs kubectl and ends the test where it fails.
func (f *fleet) run(cluster string, args ...string) {
	f.t.Helper()
	if out, err := f.kubectl(cluster, args...); err != nil {
		f.t.Fatal(err, out)
	}
}

// steps are all the phases that a contract has gone through on the ledger.
func (f *fleet) steps(contract string) string {
	f.t.Helper()
	out, err := exec.CommandContext(f.ctx, "git", "-C", f.Git.RepoDir(rig.Repo), "log", "--reverse", "--format=%(trailers:key=Contract,valueonly)", rig.Ledger).Output()
	if err != nil {
		f.t.Fatal(err)
	}
	var steps []string
	for line := range strings.Lines(string(out)) {
		if step, ok := strings.CutPrefix(strings.TrimSpace(line), contract+" "); ok {
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, ", ")
}
