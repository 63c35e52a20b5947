//go:build e2e

package flux

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/flux"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var bin string

func TestMain(m *testing.M) {
	envtest.Main(m, &bin, env.BuildTools, liqo.Build, flux.Build, env.Isolate)
}

// template is where the objects are that users apply.
const (
	template = "../../../fleet-repo-template/install/flux"
	consumer = "../../../fleet-repo-template/install/consumer"
)

// fleet is a running fleet whose consumer has Flux.
type fleet struct {
	*rigtest.Fleet
	t      *testing.T
	ctx    context.Context
	daemon *rig.Daemon
	agent  *env.Program // of the first provider
	flux   *flux.Flux
	asked  int // how often Flux was asked to look again
	// providers that rome is peered with.
	providers []string
}

// cluster is rome's file.
func cluster(delivery string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], delivery: " + delivery + "}\n"
}

// start brings up providers, which give, and rome, which takes and has Flux. The
// daemon asks the repository that often when nobody tells it of a push.
func start(t *testing.T, poll string, providers ...string) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx, providers: providers}
	o := rig.Options{
		Dir: t.TempDir(), Bin: bin, Liqo: true, Audit: true, Consumers: []string{"rome"}, Providers: map[string][]env.GPUNode{},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
		Inputs: map[string]string{
			"clusters/rome.yaml": cluster("flux"),
			"tenants/nlp.yaml":   "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [nlp]}\n",
		},
	}
	for _, name := range providers {
		o.Providers[name] = []env.GPUNode{{Name: name + "-gpu", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}
	}
	f.Fleet = rigtest.Start(ctx, t, o, func(r *rigtest.Fleet) {
		f.Fleet = r
		f.logs()
	})
	var err error
	if f.flux, err = flux.Install(ctx, flux.Options{Cluster: f.Clusters["rome"], Dir: filepath.Join(f.Dir, "flux"), Progress: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.flux.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.prepare()
	f.Git.OnPush(func(env.Push) { _ = f.flux.Reconcile(ctx) }) // else its interval brings it
	if f.daemon, err = f.Daemon(ctx, "one", "--poll-interval", poll, "--signing-key", f.key()); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	for _, name := range slices.Backward(providers) { // the first is f.agent
		if f.agent, err = f.Agent(ctx, name, f.daemon); err != nil {
			t.Fatal(err)
		}
	}
	f.heard()
	return f
}

// heard waits until the daemon has heard every provider.
func (f *fleet) heard() {
	f.t.Helper()
	f.Eventually("the providers sell and enforce", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && strings.Count(market, "class: fleetbroker") < len(f.providers) {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
}

// follow has Flux apply the ledger, with the template's objects: vision's for
// each further tenant once more.
func (f *fleet) follow(further ...string) {
	f.t.Helper()
	f.apply(f.read("accounts.yaml"))
	here := strings.NewReplacer("https://git.example.org/acme/fleet.git", f.Git.URL(rig.Repo), "  secretRef: {name: fleet-read}\n", "", "retryInterval: 30s", "retryInterval: 2s", "timeout: 2m", "timeout: 10s")
	for _, name := range []string{"source.yaml", "namespaces.yaml", "vision-rights.yaml", "vision.yaml"} {
		text := here.Replace(f.read(name))
		for _, tenant := range append([]string{"vision"}, further...) {
			if tenant != "vision" && !strings.HasPrefix(name, "vision") {
				continue
			}
			for _, provider := range f.providers {
				f.apply(strings.NewReplacer("name: fleet-vision\n  namespace: liqo-tenant-paris", "name: fleet-"+tenant+"\n  namespace: liqo-tenant-"+provider, "vision", tenant).Replace(text))
			}
		}
	}
}

// read is a file of the template.
func (f *fleet) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(template, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// key is the daemon's signing key, a file.
func (f *fleet) key() string { return filepath.Join(f.Dir, "ledger-key") }

// prepare lays what install/consumer makes, with Liqo's namespace for each provider,
// and the daemon's key, which Flux is told of.
func (f *fleet) prepare() {
	f.t.Helper()
	dir, err := filepath.Abs(consumer)
	if err != nil {
		f.t.Fatal(err)
	}
	f.kubectl("apply", "-k", dir)
	peering, err := os.ReadFile(filepath.Join(dir, "peering.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, provider := range f.providers {
		f.apply(strings.ReplaceAll(string(peering), "paris", provider))
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "fleetbroker")
	if err != nil {
		f.t.Fatal(err)
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.key(), pem.EncodeToMemory(block), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.kubectl("create", "secret", "generic", "fleet-ledger-keys", "-n", "flux-system", "--from-literal=daemon.sshpub="+string(ssh.MarshalAuthorizedKey(line)))
}

// apply applies a manifest on rome.
func (f *fleet) apply(manifest string) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.kubectl("apply", "--server-side", "-f", file)
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

// says waits until kubectl on rome prints exactly that.
func (f *fleet) says(want string, args ...string) {
	f.t.Helper()
	f.Eventually("rome: kubectl "+strings.Join(args, " "), func() error {
		got, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, args...)
		if got = strings.TrimSpace(got); err == nil && got != want {
			err = fmt.Errorf("printed %q, want %q", got, want)
		}
		return err
	})
}

// deliver changes rome's mode of delivery.
func (f *fleet) deliver(mode string) {
	f.t.Helper()
	if _, err := f.Platform.CommitAndPush(f.ctx, "Deliver to rome by "+mode, map[string]string{"clusters/rome.yaml": cluster(mode)}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) logs() {
	for name, c := range f.Clusters {
		out, err := c.Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io,nodes,namespaces", "-A", "-o", "wide")
		f.t.Logf("%s: %v\n%s", name, err, out)
	}
	out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "gitrepositories.source.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io", "-A")
	f.t.Logf("%v\n%s", err, out)
	if f.flux != nil {
		for _, p := range f.flux.Programs {
			f.Log(p.LogFile(), 6000)
		}
	}
	if f.daemon != nil {
		f.Log(f.daemon.LogFile(), 6000)
	}
}

// intent asks for GPUs in rome for namespace vision.
func intent(name string, gpus int) string {
	return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %s, namespace: vision}
spec:
  consumer: rome
  resources: {cpu: "4", memory: 16Gi, pods: "20", ephemeral-storage: 20Gi, gpu: {count: %d, models: [nvidia-h100]}}
  offload: {namespaces: [{name: vision, create: true, podOffloadingStrategy: Remote}]}
`, name, gpus)
}
