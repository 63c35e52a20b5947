package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
)

// Options describe a fleet.
type Options struct {
	// Dir holds everything: servers' data, logs, clones, keys.
	Dir string
	// Bin is the directory with the programs fleetbroker and fleet-agent.
	Bin string
	// Providers by name, each with its nodes.
	Providers map[string][]env.GPUNode
	// Consumers by name.
	Consumers []string
	// On are clusters by name that stand already, another rig's: they are used as they
	// are, in place of new ones, and not stopped.
	On map[string]*env.Cluster
	// Inputs are further files of the fleet repo, over those that Start makes.
	Inputs map[string]string
	// AgentArgs are added to the command line of every agent.
	AgentArgs []string
	// AgentArgsOf are added to that of one cluster's agent.
	AgentArgsOf map[string][]string
	// Kubernetes is the version of all clusters, as in env.ClusterOptions, with more
	// arguments for their API servers.
	Kubernetes    string
	APIServerArgs []string
	// Env is added to the environment of daemons and agents, as "NAME=value".
	Env []string
	// Liqo runs on every cluster, and pods do. The calling process is isolated
	// (env.Isolate). Consumers get a node of their own, for virtual kubelets.
	Liqo bool
	// LiqoNamespaces are where Liqo is installed on clusters that do not have it
	// in the usual one.
	LiqoNamespaces map[string]string
	// Signed makes a fleet as `fleetbroker init` does: with a trust root and keys of
	// its own, by which the platform's clone signs. Without it daemons are unsigned.
	Signed bool
	// Audit lets clusters count the API calls made to them.
	Audit bool
	// Lent takes clusters that have nothing special from a pool, for rigs that come and
	// go in one process, which ends with env.StopPools.
	Lent bool
	// Progress is told what is done; may be nil.
	Progress io.Writer
}

// Ledger is the branch that the daemon of a rig writes.
const Ledger = "ledger"

// Repo is the name of the fleet repo on the rig's git server.
const Repo = "fleet"

// webhookSecret is shared by the git server and the daemons of a rig.
const webhookSecret = "a secret of this rig only"

// Rig is a running fleet without daemons and agents: start those as needed.
type Rig struct {
	Options
	Git      *env.GitServer
	Clusters map[string]*env.Cluster
	// Liqos are the installations of Liqo by cluster, if there are any.
	Liqos map[string]*liqo.Liqo
	// Platform is the clone of the people who run the fleet.
	Platform *env.Team
	// Laid is the directory that `fleetbroker init` made, in a signed fleet.
	Laid string

	authority *pki.Authority
	keys      string           // directory of keys and trust root, in a signed fleet
	webhooks  *env.Certificate // of all installations of Liqo
	mu        sync.Mutex
	cleanups  []func() error
	issuing   sync.Mutex
}

// webhooks is the certificate of all installations of Liqo: their webhooks read
// it from one place, so that all rigs of a process need the same.
var webhooks = sync.OnceValues(func() (*env.Certificate, error) { return env.NewCertificate(liqo.WebhookNames...) })

// Start brings up clusters and git server and pushes the first inputs.
func Start(ctx context.Context, o Options) (*Rig, error) {
	r := &Rig{Options: o, Clusters: map[string]*env.Cluster{}, Liqos: map[string]*liqo.Liqo{}}
	if r.Progress == nil {
		r.Progress = io.Discard
	}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context) error {
	for _, dir := range []string{"kubeconfigs", "agents", "hooks", "logs"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("start the rig: %w", err)
		}
	}
	var err error
	if r.authority, err = pki.InitCA(filepath.Join(r.Dir, "pki"), "rig", time.Now); err != nil {
		return err
	}
	for _, forge := range []string{"generic"} {
		if err := os.WriteFile(filepath.Join(r.Dir, "hooks", forge), []byte(webhookSecret), 0o600); err != nil {
			return fmt.Errorf("start the rig: %w", err)
		}
	}
	if r.webhooks, err = webhooks(); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, name := range r.names() {
		group.Go(func() error { return r.startCluster(gctx, name) })
	}
	group.Go(func() error { return r.startGit(gctx) })
	return group.Wait()
}

// names are all clusters, in order.
func (r *Rig) names() []string {
	out := slices.Collect(maps.Keys(r.Providers))
	out = append(out, r.Consumers...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *Rig) startCluster(ctx context.Context, name string) error {
	if c := r.On[name]; c != nil {
		r.mu.Lock()
		r.Clusters[name] = c
		r.mu.Unlock()
		return r.kubeconfigs(c)
	}
	dir := filepath.Join(r.Dir, "clusters", name)
	if r.Lent && !r.Audit && r.Kubernetes == "" && len(r.APIServerArgs) == 0 {
		return r.borrow(ctx, name, filepath.Join(dir, "liqo"))
	}
	c, err := env.StartCluster(ctx, env.ClusterOptions{Name: name, Dir: dir, Audit: r.Audit, ControllerManager: r.Liqo, Pods: r.Liqo, Progress: r.Progress, Kubernetes: r.Kubernetes, APIServerArgs: r.APIServerArgs})
	if err != nil {
		return err
	}
	r.cleanup(c.Stop)
	if err := r.installLiqo(ctx, c, filepath.Join(dir, "liqo")); err != nil {
		return err
	}
	if err := env.InstallAgentCRDs(ctx, c.Config); err != nil {
		return err
	}
	return r.populate(ctx, c)
}

// borrow makes a cluster of a pool one of the rig's.
func (r *Rig) borrow(ctx context.Context, name, dir string) error {
	pool := env.Plain
	if r.Liqo {
		pool = manned
	}
	c, err := pool.Borrow(ctx, name)
	if err != nil {
		return err
	}
	r.cleanup(func() error { return pool.Return(c) })
	if r.Liqo {
		if err := r.installLiqo(ctx, c, dir); err != nil {
			return err
		}
	}
	return r.populate(ctx, c)
}

// manned lends clusters that run pods and have all of Liqo's kinds, and the agent's.
var manned = env.NewPool(func(ctx context.Context) (*env.Cluster, error) {
	c, err := env.StartCluster(ctx, env.ClusterOptions{Name: "manned", ControllerManager: true, Pods: true, Progress: io.Discard})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(liqo.InstallCRDs(ctx, c), env.InstallAgentCRDs(ctx, c.Config)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
})

// populate makes a cluster one of the rig's, with its nodes.
func (r *Rig) populate(ctx context.Context, c *env.Cluster) (err error) {
	r.mu.Lock()
	r.Clusters[c.Name] = c
	r.mu.Unlock()
	for _, node := range r.nodes(c.Name) {
		if r.Liqo {
			if node.KubeletHost, node.KubeletPort, err = c.Kubelet(); err != nil {
				return err
			}
		}
		if _, err := env.CreateGPUNode(ctx, c.Config, node); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.Progress, "  %s is up at %s\n", c.Name, c.URL)
	return r.kubeconfigs(c)
}

// kubeconfigs lets daemons and agents reach a cluster.
func (r *Rig) kubeconfigs(c *env.Cluster) error {
	for _, who := range []string{"kubeconfigs", "agents"} { // daemons' and agents'
		if err := os.WriteFile(filepath.Join(r.Dir, who, c.Name+".kubeconfig"), c.Kubeconfig, 0o600); err != nil {
			return fmt.Errorf("start the rig: %w", err)
		}
	}
	return nil
}

// nodes are a cluster's, kept alive where pods run.
func (r *Rig) nodes(cluster string) []env.GPUNode {
	nodes := slices.Clone(r.Providers[cluster])
	if !r.Liqo {
		return nodes
	}
	if len(nodes) == 0 {
		nodes = append(nodes, env.GPUNode{Name: cluster + "-own"})
	}
	for i := range nodes {
		annotations := maps.Clone(nodes[i].Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[env.FakeNode] = env.FakeNodeValue
		nodes[i].Annotations = annotations
	}
	return nodes
}

// installLiqo installs all of Liqo, or its CRDs alone.
func (r *Rig) installLiqo(ctx context.Context, c *env.Cluster, dir string) error {
	if !r.Liqo {
		return env.InstallLiqoCRDs(ctx, c.Config)
	}
	l, err := liqo.Install(ctx, liqo.Options{Cluster: c, ClusterID: c.Name, Namespace: r.LiqoNamespaces[c.Name], Dir: dir, Certificate: r.webhooks, Progress: r.Progress})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.Liqos[c.Name] = l
	r.mu.Unlock()
	r.cleanup(l.Stop)
	return nil
}

func (r *Rig) startGit(ctx context.Context) error {
	var err error
	if r.Git, err = env.StartGitHTTP(ctx, filepath.Join(r.Dir, "git")); err != nil {
		return err
	}
	r.cleanup(r.Git.Stop)
	if err := r.Git.Init(ctx, Repo); err != nil {
		return err
	}
	if r.Platform, err = env.CloneTeam(ctx, r.Git.URL(Repo), filepath.Join(r.Dir, "platform"), "platform"); err != nil {
		return err
	}
	if r.Signed {
		if err := r.makeKeys(ctx); err != nil {
			return err
		}
		if err := r.Sign(ctx, r.Platform); err != nil {
			return err
		}
	}
	_, err = r.Platform.CommitAndPush(ctx, "Set the fleet up", r.inputs())
	return err
}

// inputs are the first files of the fleet repo.
func (r *Rig) inputs() map[string]string {
	files := map[string]string{
		"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
			"  writeBack: {mode: push, inputs: main, branch: " + Ledger + ", statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}\n",
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec:\n  consumers: [" +
			strings.Join(r.Consumers, ", ") + "]\n  namespaces: [vision, \"vision-*\"]\n  secrets: [{consumer: rome, namespace: liqo-tenant-paris, name: vision-at-paris}]\n",
	}
	for _, name := range r.names() {
		var roles []string
		if _, ok := r.Providers[name]; ok {
			roles = append(roles, "provider")
		}
		if slices.Contains(r.Consumers, name) {
			roles = append(roles, "consumer")
		}
		files["clusters/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  roles: [" +
			strings.Join(roles, ", ") + "]\n  defaultPrice: {currency: EUR, perHour: {gpu: \"2.80\", cpu: \"0.02\", memoryGi: \"0.003\"}}\n"
		if namespace := r.LiqoNamespaces[name]; namespace != "" {
			files["clusters/"+name+".yaml"] += "  liqo: {namespace: " + namespace + "}\n"
		}
	}
	maps.Copy(files, r.Inputs)
	return files
}

// cleanup adds what Stop does, last first.
func (r *Rig) cleanup(fn func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, fn)
}

// Stop ends everything that was started.
func (r *Rig) Stop() error {
	r.mu.Lock()
	list := slices.Clone(r.cleanups)
	r.cleanups = nil
	r.mu.Unlock()
	var errs []error
	for _, fn := range slices.Backward(list) {
		errs = append(errs, fn())
	}
	return errors.Join(errs...)
}

// Team clones the fleet repo for somebody.
func (r *Rig) Team(ctx context.Context, name string) (*env.Team, error) {
	return env.CloneTeam(ctx, r.Git.URL(Repo), filepath.Join(r.Dir, "clone-"+name), name)
}

// Authority issues and revokes the rig's certificates.
func (r *Rig) Authority() *pki.Authority { return r.authority }

// certificates issues a certificate for the holder and lays it into a
// directory.
func (r *Rig) certificates(holder string, q pki.Request) (string, error) {
	r.issuing.Lock()
	defer r.issuing.Unlock()
	dir := filepath.Join(r.Dir, "certs-"+holder)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b, err := r.authority.Issue(q)
	if err != nil {
		return "", err
	}
	if err := b.WriteDir(dir); err != nil {
		return "", err
	}
	return dir, nil
}
