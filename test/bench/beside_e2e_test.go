//go:build e2e

package bench

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/delivery/reading"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/flux"
)

// sizes are how many contracts are delivered.
var sizes = []int{10, 100, 500}

// steady is how long idle servers are listened to: Flux's shortest usual
// interval, and some renewals of our Lease.
const steady = time.Minute

// settled is how long everything is left alone before the push: watches are open
// by then and caches filled.
const settled = 10 * time.Second

var nodesResource = schema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1", Resource: "virtualnodes"}

// BenchmarkBesideFlux brings the same ledger to a consumer by the daemon and by
// Flux: the same objects, a cluster and a git server of the same kind each, both
// told of the push at once, and no controllers of Liqo. Everything is connected
// and idle before the push.
func BenchmarkBesideFlux(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 40*time.Minute)
	defer cancel()
	if err := env.BuildTools(ctx, os.Stderr); err != nil {
		b.Fatal(err)
	}
	if err := flux.Build(ctx, os.Stderr); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, n := range sizes {
			ours := deliverBy(ctx, b, n, byDaemon)
			for _, wait := range []bool{false, true} {
				theirs := deliverBy(ctx, b, n, byFlux(wait))
				name := fmt.Sprintf("%d slices, beside Flux (wait: %t): ", n, wait)
				results.note(name+"Flux, push to all objects", fmt.Sprintf("%.4g ms", ms(theirs.took)))
				results.note(name+"Flux, requests for that / a minute after", fmt.Sprintf("%d / %d", theirs.calls, theirs.idle))
				results.note(name+"Flux, most memory resident", fmt.Sprintf("%.4g MiB", theirs.resident/(1<<20)))
				results.below(name+"our part of its time", float64(ours.took)/float64(theirs.took), 0.2, "")
				results.below(name+"our part of its requests a minute", float64(ours.idle)/float64(theirs.idle), 0.1, "")
			}
			name := fmt.Sprintf("%d slices: ", n)
			alone := applyAlone(ctx, b, n)
			results.note(name+"the objects alone, 16 at once", fmt.Sprintf("%.4g ms", ms(alone)))
			results.note(name+"ours, push to all objects", fmt.Sprintf("%.4g ms", ms(ours.took)))
			results.note(name+"ours, requests for that / a minute after", fmt.Sprintf("%d / %d", ours.calls, ours.idle))
			results.note(name+"ours (the whole daemon), most memory resident", fmt.Sprintf("%.4g MiB", ours.resident/(1<<20)))
		}
	}
}

// delivered is what bringing a ledger to a cluster took.
type delivered struct {
	took     time.Duration // from the return of git push
	calls    int           // requests until then
	idle     int           // requests in a steady minute after
	resident float64       // bytes, at most
}

// deliverer connects to the cluster and to the repository.
type deliverer func(ctx context.Context, b *testing.B, g *ground) contender

// contender is one that delivers: its users in the cluster, and its processes.
type contender struct {
	users []string
	pids  []int
	stop  func()
}

// ground is where one delivery is measured.
type ground struct {
	*place
	cluster *env.Cluster
	dir     string
	ledger  string // a repository from which the ledger can be pushed
}

// newGround is a cluster without anything but Liqo's definitions, and a fleet of
// n contracts whose ledger nobody has seen.
func newGround(ctx context.Context, b *testing.B, n int) *ground {
	o := gen.Options{Tenants: 1, Intents: n, Held: n, Providers: 10, Flavors: 10, Consumers: 1, Delivery: "direct", Now: made}
	g := &ground{place: serve(b, o), dir: b.TempDir()}
	g.ledger = g.hide(ctx, b)
	var err error
	if g.cluster, err = env.StartCluster(ctx, env.ClusterOptions{Name: "bench", Dir: filepath.Join(g.dir, "cluster"), Audit: true}); err != nil {
		b.Fatal(err)
	}
	if err := env.InstallLiqoCRDs(ctx, g.cluster.Config); err != nil {
		b.Fatal(err)
	}
	return g
}

// deliverBy pushes a ledger of n contracts and waits until their slices and
// virtual nodes are on the cluster.
func deliverBy(ctx context.Context, b *testing.B, n int, by deliverer) delivered {
	g := newGround(ctx, b, n)
	defer func() { _ = g.cluster.Stop() }()
	c := by(ctx, b, g)
	defer c.stop()
	<-time.After(settled)
	before := g.calls(b, c.users)
	all := make(chan time.Time, 1)
	go g.watch(ctx, n, all)
	if _, err := env.Git(ctx, g.ledger, "push", "--quiet", g.git.URL(repo), "HEAD:refs/heads/"+gen.LedgerBranch); err != nil {
		b.Fatal(err)
	}
	pushed := time.Now()
	out := delivered{}
	select {
	case at := <-all:
		out.took = max(at.Sub(pushed), time.Millisecond)
	case <-time.After(5 * time.Minute):
		b.Fatal("not everything was applied in five minutes")
	}
	out.calls = g.calls(b, c.users) - before
	<-time.After(10 * time.Second) // what follows the first pass
	rested := g.calls(b, c.users)
	<-time.After(steady)
	out.idle = g.calls(b, c.users) - rested
	for _, pid := range c.pids {
		out.resident += highWater(b, pid)
	}
	return out
}

// applyAlone is how long a cluster takes for the same objects from one who has
// them at hand and does nothing else: no git, no watch, no look at what is
// there. Nobody who applies each object is faster.
func applyAlone(ctx context.Context, b *testing.B, n int) time.Duration {
	g := newGround(ctx, b, n)
	defer func() { _ = g.cluster.Stop() }()
	config := rest.CopyConfig(g.cluster.Config)
	config.QPS = -1
	api, err := client.New(config, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	stages := g.objects(b)
	<-time.After(settled)
	began := time.Now()
	for _, stage := range stages {
		var group errgroup.Group
		group.SetLimit(16)
		for _, o := range stage {
			group.Go(func() error {
				return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("alone"), client.ForceOwnership)
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// objects are those of the ledger: what others need first, then the contracts'.
func (g *ground) objects(b *testing.B) (stages [2][]*unstructured.Unstructured) {
	err := filepath.WalkDir(filepath.Join(g.ledger, "manifests"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		objects, err := reading.Objects(text)
		for _, o := range objects {
			stage := 1
			if o.GetNamespace() == "" {
				stage = 0
			}
			stages[stage] = append(stages[stage], o)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return stages
}

// hide takes the ledger from the server, has the fleet keep still, peer nothing
// (Flux does not either) and write status as seldom as usual, and returns a
// repository from which the ledger can be pushed.
func (g *ground) hide(ctx context.Context, b *testing.B) string {
	dir := filepath.Join(g.dir, "ledger")
	if _, err := env.Git(ctx, "", "clone", "--quiet", "--branch", gen.LedgerBranch, g.git.RepoDir(repo), dir); err != nil {
		b.Fatal(err)
	}
	if _, err := env.Git(ctx, g.git.RepoDir(repo), "update-ref", "-d", "refs/heads/"+gen.LedgerBranch); err != nil {
		b.Fatal(err)
	}
	policy := strings.Replace(string(g.Files["fleet.yaml"]), "statusInterval: 1s, ", "", 1) + "  suspend: true\n  peering: {auto: false}\n"
	g.put(b, map[string][]byte{"fleet.yaml": []byte(policy)})
	return dir
}

// calls counts the requests of some users so far.
func (g *ground) calls(b *testing.B, users []string) int {
	n := 0
	for _, user := range users {
		calls, err := g.cluster.Calls(user)
		if err != nil {
			b.Fatal(err)
		}
		n += len(calls)
	}
	return n
}

// watch tells when n slices and n virtual nodes have been seen.
func (g *ground) watch(ctx context.Context, n int, all chan<- time.Time) {
	client, err := dynamic.NewForConfig(g.cluster.Config)
	if err != nil {
		return
	}
	seen := make(chan time.Time)
	for _, resource := range []schema.GroupVersionResource{slicesResource, nodesResource} {
		go func() {
			events, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return
			}
			defer events.Stop()
			names := map[string]bool{}
			for event := range events.ResultChan() {
				if o, ok := event.Object.(metav1.Object); ok {
					names[o.GetName()] = true
				}
				if len(names) == n {
					seen <- time.Now()
					return
				}
			}
		}()
	}
	<-seen
	all <- <-seen
}

// byDaemon delivers with the project's own daemon.
func byDaemon(ctx context.Context, b *testing.B, g *ground) contender {
	const user = "the-daemon"
	kubeconfig, err := g.cluster.KubeconfigFor(user, "system:masters")
	if err != nil {
		b.Fatal(err)
	}
	consumer := consumerOf(g.Files)
	files := map[string]string{filepath.Join("kubeconfigs", consumer+".kubeconfig"): string(kubeconfig), filepath.Join("hooks", "generic"): "secret"}
	for name, content := range files {
		file := filepath.Join(g.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	var addresses [2]string
	for i := range addresses {
		address, release, err := env.ReserveAddress()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(release)
		addresses[i] = address
	}
	daemon, err := env.StartProgram("daemon", g.dir, filepath.Join(programs(b), "fleetbroker"), "run", "--unsigned", "--repo", g.git.URL(repo),
		"--state-dir", filepath.Join(g.dir, "state"), "--kubeconfigs-dir", filepath.Join(g.dir, "kubeconfigs"), "--webhook-secrets-dir", filepath.Join(g.dir, "hooks"),
		"--agents-address", "", "--operators-address", addresses[0], "--webhooks-address", addresses[1], "--webhooks-tls=false", "--poll-interval", seldom)
	if err != nil {
		b.Fatal(err)
	}
	g.git.NotifyPushes(ctx, env.Generic, "http://"+addresses[1]+"/hooks/generic", "secret")
	api, err := kubernetes.NewForConfig(g.cluster.Config)
	if err != nil {
		b.Fatal(err)
	}
	until(ctx, b, "the daemon holds the cluster's Lease", func() bool {
		lease, err := api.CoordinationV1().Leases("fleetbroker").Get(ctx, "fleetbroker", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
	})
	return contender{[]string{user}, []int{daemon.PID()}, func() { _ = daemon.Stop() }}
}

// consumerOf is the one consumer of a generated fleet.
func consumerOf(files map[string][]byte) string {
	for name, text := range files {
		if strings.HasPrefix(name, "clusters/") && strings.Contains(string(text), "consumer") {
			return strings.TrimSuffix(strings.TrimPrefix(name, "clusters/"), ".yaml")
		}
	}
	return ""
}

// byFlux delivers with Flux's controllers and one Kustomization.
func byFlux(wait bool) deliverer {
	return func(ctx context.Context, b *testing.B, g *ground) contender {
		f, err := flux.Install(ctx, flux.Options{Cluster: g.cluster, Dir: filepath.Join(g.dir, "flux")})
		if err != nil {
			b.Fatal(err)
		}
		g.git.OnPush(func(env.Push) { _ = f.Reconcile(ctx) })
		file := filepath.Join(g.dir, "flux.yaml")
		objects := fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: ledger, namespace: flux-system}\n"+
			"spec: {interval: 1m, url: %q, ref: {branch: ledger}}\n---\n"+
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: all, namespace: flux-system}\n"+
			"spec: {interval: 1m, sourceRef: {kind: GitRepository, name: ledger}, path: ./manifests/%s, prune: true, wait: %t}\n", g.git.URL(repo), consumerOf(g.Files), wait)
		if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
			b.Fatal(err)
		}
		if _, err := g.cluster.Kubectl(ctx, g.dir, "apply", "-f", file); err != nil {
			b.Fatal(err)
		}
		until(ctx, b, "Flux looks at the repository", func() bool {
			out, err := g.cluster.Kubectl(ctx, g.dir, "get", "gitrepositories.source.toolkit.fluxcd.io", "ledger", "-n", "flux-system", "-o", "jsonpath={.status.conditions[*].message}")
			return err == nil && strings.Contains(out, "ledger")
		})
		c := contender{stop: func() { _ = f.Stop() }}
		for name, p := range f.Programs {
			c.users, c.pids = append(c.users, "system:serviceaccount:"+flux.Namespace+":"+name), append(c.pids, p.PID())
		}
		return c
	}
}
