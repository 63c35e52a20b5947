//go:build e2e

package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

const install = "../../../fleet-repo-template/install/"

// fleet is a running fleet whose consumer rome is delivered to by its agent.
type fleet struct {
	*rigtest.Fleet
	t      *testing.T
	ctx    context.Context
	daemon *rig.Daemon
	agent  *env.Program // rome's
}

func start(t *testing.T) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx}
	f.Fleet = rigtest.Start(ctx, t, rig.Options{
		Dir: t.TempDir(), Bin: bin, Consumers: []string{"rome"},
		Providers: map[string][]env.GPUNode{"paris": {{Name: "paris-gpu", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
		Inputs: map[string]string{
			"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], delivery: agent}\n",
		},
	}, func(r *rigtest.Fleet) {
		f.Fleet = r
		files, _ := filepath.Glob(filepath.Join(r.Dir, "logs", "*.log"))
		for _, file := range files {
			f.Log(file, 5000)
		}
	})
	f.rights()
	var err error
	if f.daemon, err = f.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	if _, err := f.Agent(ctx, "paris", f.daemon); err != nil {
		t.Fatal(err)
	}
	f.startAgent()
	f.Eventually("paris sells", func() error {
		market, err := f.daemon.Market(ctx)
		if err == nil && !strings.Contains(market, "namespace: paris") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
	return f
}

// rights take rome from the daemon and give its agent what the install base
// gives it.
func (f *fleet) rights() {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.Dir, "kubeconfigs", "rome.kubeconfig")); err != nil {
		f.t.Fatal(err)
	}
	for _, base := range []string{"agent", "consumer-agent"} {
		f.kubectl("apply", "--server-side", "-k", abs(f.t, install+base), "--force-conflicts")
	}
	kubeconfig, err := f.Clusters["rome"].KubeconfigForServiceAccount(f.ctx, "fleetbroker", "fleet-agent")
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, "agents", "rome.kubeconfig"), kubeconfig, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (f *fleet) startAgent() {
	f.t.Helper()
	var err error
	if f.agent, err = f.Agent(f.ctx, "rome", f.daemon); err != nil {
		f.t.Fatal(err)
	}
}

// kubectl runs kubectl on rome.
func (f *fleet) kubectl(args ...string) string {
	f.t.Helper()
	out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// slice is the uid of a slice on rome, "" for none.
func (f *fleet) slice(name string) string {
	f.t.Helper()
	return f.kubectl("get", "resourceslices.authentication.liqo.io", "-A", "-o", "jsonpath={.items[?(@.metadata.name==\""+name+"\")].metadata.uid}")
}

func intent(name string) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n"+
		"  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: {count: 2, models: [nvidia-h100]}}\n"+
		"  offload: {namespaces: [{name: vision, create: true}]}\n", name)
}

// The agent applies, corrects, tells and releases; it and the daemon may end
// and start again.
func TestAgentDelivers(t *testing.T) {
	f := start(t)
	f.Put("vision", "train", intent("train"))
	train := f.Contract("vision", "train", "Peering") // seen by the agent: the daemon has no way there
	uid := f.slice(train)
	if uid == "" {
		t.Fatal("the slice is not on rome")
	}

	f.kubectl("delete", "resourceslices.authentication.liqo.io", train, "-n", "liqo-tenant-paris")
	f.Eventually("what was deleted by hand comes back", func() error {
		if now := f.slice(train); now == "" || now == uid {
			return fmt.Errorf("the slice is %q, was %q", now, uid)
		}
		return nil
	})
	uid = f.slice(train)

	files, err := f.Files("paris")
	if err != nil {
		t.Fatal(err)
	}
	spy, err := transport.NewHTTP("https://"+f.daemon.Agents, "rome", files)
	if err != nil {
		t.Fatal(err)
	}
	var refusal *wire.Refusal
	if _, err := spy.Manifests(f.ctx, "", 0); !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden {
		t.Errorf("paris asks for rome's manifests: %v", err)
	}
	if err := spy.Observe(f.ctx, wire.Observed{}); !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden {
		t.Errorf("paris tells what is in rome: %v", err)
	}

	if err := f.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "serve", intent("serve"))
	serve := f.Contract("vision", "serve", "Reserved")
	f.startAgent()
	f.Contract("vision", "serve", "Peering")

	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Released")
	if now := f.slice(train); now != "" {
		t.Errorf("the contract is Released, and its slice %s there", now)
	}
	if f.slice(serve) == "" {
		t.Error("the other contract's slice is gone")
	}
	f.kubectl("get", "namespace", "vision")
	f.Sound()
}
