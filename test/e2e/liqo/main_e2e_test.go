//go:build e2e

package liqo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// patience bounds what is waited for, on a busy machine.
const patience = 2 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools, liqo.Build, env.Isolate) }

// fleet is a running fleet with real Liqo.
type fleet struct {
	*rig.Rig
	t      *testing.T
	ctx    context.Context
	daemon *rig.Daemon
	agents map[string]*env.Program
}

// start brings up the providers and the consumer rome, with agents and daemon.
func start(t *testing.T, providers ...string) *fleet {
	t.Helper()
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
	began := time.Now()
	r, err := rig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Rig: r, t: t, ctx: ctx, agents: map[string]*env.Program{}}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	t.Logf("%d clusters with Liqo: %s", len(r.Clusters), time.Since(began).Round(time.Millisecond))
	if f.daemon, err = r.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	for name := range r.Clusters {
		if f.agents[name], err = r.Agent(ctx, name, f.daemon); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("the providers sell and enforce", func() error {
		market, err := f.daemon.Market(ctx)
		if err == nil && strings.Count(market, "class: fleetbroker") < len(providers) {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	return f
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

func (f *fleet) put(tenant, name, content string) {
	f.t.Helper()
	if _, err := f.Platform.CommitAndPush(f.ctx, "Ask for "+name, map[string]string{"intents/" + tenant + "/" + name + ".yaml": content}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) remove(tenant, name string) {
	f.t.Helper()
	if _, err := f.Platform.Remove(f.ctx, "Give up "+name, "intents/"+tenant+"/"+name+".yaml"); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Platform.Push(f.ctx); err != nil {
		f.t.Fatal(err)
	}
}

// eventually waits for a condition that is not yet an error.
func (f *fleet) eventually(what string, condition func() error) {
	f.t.Helper()
	began := time.Now()
	for {
		err := condition()
		if err == nil {
			f.t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > patience || f.ctx.Err() != nil {
			f.t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// says waits until kubectl on a cluster prints exactly that.
func (f *fleet) says(cluster, want string, args ...string) {
	f.t.Helper()
	f.eventually(cluster+": kubectl "+strings.Join(args, " "), func() error {
		got, err := f.kubectl(cluster, args...)
		if err == nil && got != want {
			err = fmt.Errorf("printed %q, want %q", got, want)
		}
		return err
	})
}

// history judges the remote's whole history.
func (f *fleet) history() *checker.Result {
	f.t.Helper()
	st := filesystem.NewStorage(osfs.New(f.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault())
	res, err := checker.Check(st, rig.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// contract waits for the one contract of an intent in a phase and names it.
func (f *fleet) contract(tenant, intent, phase string) (name string) {
	f.t.Helper()
	f.eventually(tenant+"/"+intent+" is "+phase, func() error {
		res, got := f.history(), map[string]string{}
		for _, list := range []map[string]string{res.Held, res.Ended} {
			for contract, p := range list {
				if strings.HasPrefix(contract, tenant+"-"+intent+"-") {
					if got[contract] = p; p == phase {
						name = contract
					}
				}
			}
		}
		if name == "" {
			return fmt.Errorf("its contracts are %v", got)
		}
		return nil
	})
	return name
}

// sound fails the test for every invariant that was broken.
func (f *fleet) sound() {
	f.t.Helper()
	for _, v := range f.history().Violations {
		f.t.Errorf("invariant broken in %s", v)
	}
}

func (f *fleet) logs() {
	for name := range f.Clusters {
		out, err := f.kubectl(name, "get", "resourceslices.authentication.liqo.io,quotas.offloading.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io,"+
			"tenants.authentication.liqo.io,nodes,deployments,pods", "-A", "-o", "wide")
		f.t.Logf("%s: %v\n%s", name, err, out)
		files, _ := filepath.Glob(filepath.Join(f.Dir, "clusters", name, "liqo", "*.log"))
		for _, file := range files {
			f.log(file, 2000)
		}
	}
	for _, p := range f.agents {
		f.log(p.LogFile(), 4000)
	}
	if f.daemon != nil {
		f.log(f.daemon.LogFile(), 6000)
	}
}

func (f *fleet) log(path string, end int) {
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Log(err)
		return
	}
	f.t.Logf("%s:\n%s", path, text[max(0, len(text)-end):])
}
