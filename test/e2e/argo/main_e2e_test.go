//go:build e2e

package argo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/argo"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var bin string

func TestMain(m *testing.M) {
	envtest.Main(m, &bin, env.BuildTools, liqo.Build, argo.Build, env.Isolate)
}

// template is where the objects are that users apply.
const template = "../../../fleet-repo-template/"

// sample is the fleet repo's address in the template.
const sample = "https://git.example.org/acme/fleet.git"

// manager is who Argo CD of another cluster compares as.
const manager = "system:serviceaccount:kube-system:argocd-manager"

// applications is the resource of kubectl.
const applications = "applications.argoproj.io"

// fleet is a running fleet whose consumer rome is served by Argo CD.
type fleet struct {
	*rigtest.Fleet
	t      *testing.T
	ctx    context.Context
	daemon *rig.Daemon
	argo   *argo.Argo
	// hub is the cluster that Argo CD runs on: rome, or one of its own.
	hub *env.Cluster
}

// start brings up provider paris, consumer rome, and Argo CD: on rome, or on hub where
// that is another cluster.
func start(t *testing.T, withLiqo bool, hub *env.Cluster) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx, hub: hub}
	o := rig.Options{
		Dir: t.TempDir(), Bin: bin, Liqo: withLiqo, Audit: true, Consumers: []string{"rome"},
		Providers: map[string][]env.GPUNode{"paris": {{Name: "paris-gpu", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
		Inputs: map[string]string{
			"clusters/rome.yaml": f.cluster(),
			"tenants/nlp.yaml":   "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [nlp]}\n",
		},
	}
	if !withLiqo { // what is pruned in the foreground goes by the garbage collector
		rome := envtest.Cluster(t, env.ClusterOptions{Name: "rome", ControllerManager: true, Audit: true})
		for _, install := range []func(context.Context, *rest.Config) error{env.InstallLiqoCRDs, env.InstallAgentCRDs} {
			if err := install(ctx, rome.Config); err != nil {
				t.Fatal(err)
			}
		}
		o.On = map[string]*env.Cluster{"rome": rome}
	}
	f.Fleet = rigtest.Start(ctx, t, o, func(r *rigtest.Fleet) {
		f.Fleet = r
		f.logs()
	})
	if f.hub == nil {
		f.hub = f.Clusters["rome"]
	}
	var err error
	if f.argo, err = argo.Install(ctx, argo.Options{Cluster: f.hub, Dir: filepath.Join(f.Dir, "argo"), Progress: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.argo.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.prepare()
	if hub == nil {
		f.least()
	}
	f.Git.OnPush(func(env.Push) { _ = f.argo.Refresh(ctx) }) // as its webhook does; else its interval brings it
	if f.daemon, err = f.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	if _, err = f.Agent(ctx, "paris", f.daemon); err != nil {
		t.Fatal(err)
	}
	f.heard()
	return f
}

// cluster is rome's file. An Argo CD of another cluster compares as an account of its own,
// which the file names.
func (f *fleet) cluster() string {
	text := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec:\n  roles: [consumer]\n  delivery: argocd\n"
	if f.hub != nil {
		text += "  deliverers: [\"" + manager + "\"]\n"
	}
	return text
}

// heard waits until the daemon has heard the provider.
func (f *fleet) heard() {
	f.t.Helper()
	f.Eventually("the provider sells and enforces", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && !strings.Contains(market, "class: fleetbroker") {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
}

// prepare lays what install/consumer makes, with Liqo's namespace for the provider, and
// tells Argo CD what is healthy and that it acts as the projects' accounts.
func (f *fleet) prepare() {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "consumer")
	if err := os.CopyFS(dir, os.DirFS(template+"install/consumer")); err != nil {
		f.t.Fatal(err)
	}
	if f.hub != f.Clusters["rome"] { // as `fleetbroker install` does by the Cluster file
		policies := manifests.Admitting([]byte(f.read("install/consumer/policies.yaml")), &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Deliverers: []string{manager}}})
		if err := os.WriteFile(filepath.Join(dir, "policies.yaml"), policies, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	f.on(f.Clusters["rome"], "apply", "-k", dir)
	f.apply(f.Clusters["rome"], f.read("install/consumer/peering.yaml"))
	health, err := filepath.Abs(template + "install/argocd/health.yaml")
	if err != nil {
		f.t.Fatal(err)
	}
	f.on(f.hub, "patch", "configmap", "argocd-cm", "-n", argo.Namespace, "--patch-file", health)
}

// least has the daemon come to rome as the account that install/consumer makes for it.
func (f *fleet) least() {
	f.t.Helper()
	kubeconfig, err := f.Clusters["rome"].KubeconfigForServiceAccount(f.ctx, "fleetbroker", "fleetbroker")
	if err == nil {
		err = os.WriteFile(filepath.Join(f.Dir, "kubeconfigs", "rome.kubeconfig"), kubeconfig, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// here puts this fleet's addresses into a file of the template.
func (f *fleet) here(text string) string {
	server := "https://kubernetes.default.svc"
	if f.hub != f.Clusters["rome"] {
		server = f.Clusters["rome"].URL
	}
	return strings.NewReplacer(sample, f.Git.URL(rig.Repo), "https://kubernetes.default.svc", server, "duration: 5s", "duration: 1s", "maxDuration: 1m", "maxDuration: 2s").Replace(text)
}

// of are a sample's objects for one tenant more.
func of(tenant, text string) string { return strings.ReplaceAll(text, "vision", tenant) }

// read is a file of the template.
func (f *fleet) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(template + name)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// apply applies a manifest on a cluster.
func (f *fleet) apply(c *env.Cluster, manifest string) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.on(c, "apply", "--server-side", "-f", file)
}

// on runs kubectl on a cluster.
func (f *fleet) on(c *env.Cluster, args ...string) string {
	f.t.Helper()
	out, err := c.Kubectl(f.ctx, f.Dir, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// says waits until kubectl on a cluster prints exactly that.
func (f *fleet) says(c *env.Cluster, want string, args ...string) {
	f.t.Helper()
	f.Eventually(c.Name+": kubectl "+strings.Join(args, " "), func() error {
		got, err := c.Kubectl(f.ctx, f.Dir, args...)
		if got = strings.TrimSpace(got); err == nil && got != want {
			err = fmt.Errorf("printed %q, want %q", got, want)
		}
		return err
	})
}

// application waits until an Application is so: "<sync> <health>".
func (f *fleet) application(name, want string) {
	f.t.Helper()
	f.says(f.hub, want, "get", applications, name, "-n", argo.Namespace, "-o", "jsonpath={.status.sync.status} {.status.health.status}")
}

// health waits until Argo CD calls one kind of an Application's objects so.
func (f *fleet) health(application, kind, want string) {
	f.t.Helper()
	f.says(f.hub, want, "get", applications, application, "-n", argo.Namespace, "-o",
		`jsonpath={range .status.resources[?(@.kind=="`+kind+`")]}{.health.status}: {.health.message}{"\n"}{end}`)
}

// refused waits until Argo CD says of an Application, in its conditions or of its last
// sync, all of some words.
func (f *fleet) refused(application string, words ...string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("Application %s is refused because of %q", application, words), func() error {
		got, err := f.hub.Kubectl(f.ctx, f.Dir, "get", applications, application, "-n", argo.Namespace, "-o",
			`jsonpath={.status.conditions[*].message} {.status.operationState.phase} {.status.operationState.message} {.status.operationState.syncResult.resources[*].message}`)
		if err == nil && slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(got, word) }) {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// push has another account push files to the ledger, over what the daemon wrote, while
// the daemon is away. The listing of a directory takes up those that are below it.
func (f *fleet) push(dir string, files map[string]string) {
	f.t.Helper()
	git := func(args ...string) {
		f.t.Helper()
		if out, err := f.Platform.Git(f.ctx, args...); err != nil {
			f.t.Fatal(out, err)
		}
	}
	git("fetch", "-q", "origin", rig.Ledger)
	git("checkout", "-q", "-B", "evil", "FETCH_HEAD")
	at := filepath.Join(f.Platform.Dir, filepath.FromSlash(dir))
	listing, err := os.ReadFile(filepath.Join(at, "kustomization.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	text := string(listing)
	for name, content := range files {
		text += "- \"" + name + "\"\n"
		if err := os.WriteFile(filepath.Join(at, name), []byte(content), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(at, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	git("add", "-A")
	git("commit", "-q", "-m", "evil")
	git("push", "-q", "origin", "evil:"+rig.Ledger)
	git("checkout", "-q", "main")
}

// writes are the calls that Argo CD made to change anything on rome outside its own
// namespace, as they are logged.
func (f *fleet) writes() []env.Call {
	f.t.Helper()
	calls, err := f.Clusters["rome"].Calls("")
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(calls, func(c env.Call) bool {
		return !strings.Contains(c.User, "argocd-") || c.Group == "argoproj.io" || c.Resource == "events" || c.Namespace == argo.Namespace ||
			c.Subresource != "" || slices.Contains([]string{"get", "list", "watch"}, c.Verb) || strings.Contains(c.URI, "dryRun") || c.Group == "authorization.k8s.io"
	})
}

func (f *fleet) logs() {
	for name, c := range f.Clusters {
		out, err := c.Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io,nodes,namespaces", "-A", "-o", "wide")
		f.t.Logf("%s: %v\n%s", name, err, out)
	}
	if f.hub != nil {
		out, err := f.hub.Kubectl(f.ctx, f.Dir, "get", "applications.argoproj.io,applicationsets.argoproj.io", "-A", "-o", "yaml")
		f.t.Logf("%v\n%s", err, out[max(0, len(out)-12000):])
	}
	if f.argo != nil {
		for _, name := range []string{argo.Controller, argo.RepoServer, argo.ApplicationSet} {
			if p := f.argo.Programs[name]; p != nil {
				f.Log(p.LogFile(), 8000)
			}
		}
	}
	if f.daemon != nil {
		f.Log(f.daemon.LogFile(), 6000)
	}
}
