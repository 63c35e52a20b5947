package liqo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// The namespaces in which Liqo may be installed: the usual one, and another that
// people take.
const (
	Namespace      = "liqo"
	OtherNamespace = "liqo-system"
)

// programs are the chart's Deployments that run here, by the tool that each is.
var programs = map[string]string{
	"liqo-webhook":            "liqo-webhook",
	"liqo-controller-manager": "liqo-controller-manager",
	"liqo-crd-replicator":     "liqo-crd-replicator",
}

// Options of an installation.
type Options struct {
	// Cluster gets Liqo; it was started with ControllerManager and Pods.
	Cluster *env.Cluster
	// ClusterID is Liqo's name of the cluster.
	ClusterID string
	// Namespace that Liqo is installed in; default Namespace.
	Namespace string
	// Dir holds kubeconfigs and logs.
	Dir string
	// Certificate of all webhooks of the machine: Liqo reads it from one place.
	Certificate *env.Certificate
	// Progress hears about programs that have to be built first; may be nil.
	Progress io.Writer
}

// Liqo is a running installation.
type Liqo struct {
	Options
	client   client.Client
	mu       sync.Mutex
	running  map[string]*env.Program
	start    map[string]func(context.Context) error
	kubelets *kubelets
	release  []func()
	webhook  string // its address
}

// WebhookNames are what the certificate of all webhooks has to be for.
var WebhookNames = []string{"liqo-webhook." + Namespace + ".svc", "liqo-webhook." + OtherNamespace + ".svc", "localhost"}

// starting is held while a webhook starts: it writes the file of the certificate
// anew, and ends when it reads what another one is writing.
var starting sync.Mutex

// Build makes sure that all programs are there, building them if need be,
// which takes minutes the first time.
func Build(ctx context.Context, progress io.Writer) error {
	for _, name := range []string{"kube-scheduler", "kwok", "helm", "liqo-controller-manager", "liqo-crd-replicator", "liqo-webhook", "liqo-virtual-kubelet"} {
		if _, err := tools.Find(ctx, name, progress); err != nil {
			return err
		}
	}
	return nil
}

// Install applies the chart and starts Liqo's programs. It returns when they
// are ready.
func Install(ctx context.Context, o Options) (*Liqo, error) {
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	l := &Liqo{Options: o, running: map[string]*env.Program{}, start: map[string]func(context.Context) error{}}
	if err := l.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install Liqo on %s: %w", o.Cluster.Name, err), l.Stop())
	}
	return l, nil
}

// InstallCRDs installs all of Liqo's kinds, as its chart has them.
func InstallCRDs(ctx context.Context, c *env.Cluster) error {
	module, err := tools.ModuleDir(ctx, "liqo", "github.com/liqotech/liqo")
	if err != nil {
		return err
	}
	return env.InstallCRDsOf(ctx, c.Config, os.DirFS(filepath.Join(module, "deployments", "liqo", "charts", "liqo-crds", "crds")))
}

func (l *Liqo) install(ctx context.Context) error {
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	module, err := tools.ModuleDir(ctx, "liqo", "github.com/liqotech/liqo")
	if err != nil {
		return err
	}
	charts := filepath.Join(module, "deployments", "liqo")
	if err := InstallCRDs(ctx, l.Cluster); err != nil {
		return err
	}
	if l.client, err = client.New(l.Cluster.Config, client.Options{}); err != nil {
		return err
	}
	if l.webhook, err = l.address(); err != nil {
		return err
	}
	c, err := render(ctx, l.Options, charts, portOf(l.webhook))
	if err != nil {
		return err
	}
	c.adapt(l.Certificate)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace}}
	if err := client.IgnoreAlreadyExists(l.client.Create(ctx, namespace)); err != nil {
		return err
	}
	if err := c.apply(ctx, l.client, l.Namespace); err != nil {
		return err
	}
	for _, name := range []string{"liqo-webhook", "liqo-controller-manager", "liqo-crd-replicator"} {
		d := c.deployments[name]
		if d == nil {
			return fmt.Errorf("the chart has no Deployment %s", name)
		}
		if err := l.prepare(ctx, name, d.Spec.Template.Spec); err != nil {
			return err
		}
		if err := l.start[name](ctx); err != nil {
			return err
		}
	}
	l.kubelets, err = watchKubelets(l)
	return err
}

// adapt changes what supposes containers: the webhook's Service leads to this
// machine, and its certificate is there from the beginning.
func (c *chart) adapt(cert *env.Certificate) {
	for _, o := range c.objects {
		switch {
		case o.GetKind() == "Service" && o.GetName() == "liqo-webhook":
			spec := map[string]any{"type": "ExternalName", "externalName": "localhost"}
			if ports, ok, _ := unstructured.NestedSlice(o.Object, "spec", "ports"); ok {
				spec["ports"] = ports
			}
			o.Object["spec"] = spec
		case o.GetKind() == "Secret" && o.GetName() == "liqo-webhook-certs":
			o.Object["stringData"] = map[string]any{"ca": string(cert.CA), "tls.crt": string(cert.Cert), "tls.key": string(cert.Key)}
		}
	}
}

// prepare says how one of Liqo's programs is started: with the arguments of
// its container, and as its ServiceAccount.
func (l *Liqo) prepare(ctx context.Context, name string, pod corev1.PodSpec) error {
	path, err := tools.Find(ctx, programs[name], l.Progress)
	if err != nil {
		return err
	}
	var addresses [2]string
	for i := range addresses {
		if addresses[i], err = l.address(); err != nil {
			return err
		}
	}
	metrics, health := addresses[0], addresses[1]
	values := map[string]string{"CLUSTER_ID": l.ClusterID, "POD_NAMESPACE": l.Namespace, "POD_NAME": name, "DEPLOYMENT_NAME": name}
	args := expand(pod.Containers[0].Args, values)
	args = append(args, "--metrics-address="+metrics)
	if name != "liqo-crd-replicator" {
		args = append(args, "--health-probe-address="+health)
	}
	l.start[name] = func(ctx context.Context) error {
		if name == "liqo-webhook" {
			starting.Lock()
			defer starting.Unlock()
		}
		kubeconfig, err := l.kubeconfig(ctx, l.Namespace, pod.ServiceAccountName)
		if err != nil {
			return err
		}
		p, err := env.StartProgramWith(append(environ(values), "KUBECONFIG="+kubeconfig, env.SeldomCollected), name, l.Dir, path, args...)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.running[name] = p
		l.mu.Unlock()
		if name == "liqo-crd-replicator" {
			return nil // it has no probe
		}
		if err := p.Await(ctx, "http://"+health+"/readyz"); err != nil || name != "liqo-webhook" {
			return err
		}
		return p.AwaitTLS(ctx, l.webhook) // it is ready before it has read its certificate
	}
	return nil
}

// kubeconfig writes the file with which a program acts as a ServiceAccount,
// and names it.
func (l *Liqo) kubeconfig(ctx context.Context, namespace, account string) (string, error) {
	data, err := l.Cluster.KubeconfigForServiceAccount(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(l.Dir, namespace+"-"+account+".kubeconfig")
	return path, os.WriteFile(path, data, 0o600)
}

// address reserves one until Stop.
func (l *Liqo) address() (string, error) {
	a, release, err := env.ReserveAddress()
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release = append(l.release, release)
	return a, nil
}

// Kill ends one of Liqo's programs at once, and Start starts it again.
func (l *Liqo) Kill(program string) error {
	l.mu.Lock()
	p := l.running[program]
	delete(l.running, program)
	l.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%s does not run on %s", program, l.Cluster.Name)
	}
	return p.Kill()
}

// Start starts a program again that was killed.
func (l *Liqo) Start(ctx context.Context, program string) error { return l.start[program](ctx) }

// Stop ends everything of Liqo's that runs.
func (l *Liqo) Stop() error {
	var errs []error
	if l.kubelets != nil {
		errs = append(errs, l.kubelets.stop())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.running {
		errs = append(errs, p.Kill())
	}
	l.running = map[string]*env.Program{}
	for _, release := range l.release {
		release()
	}
	l.release = nil
	return errors.Join(errs...)
}

// expand replaces $(NAME) in arguments, as a kubelet does.
func expand(args []string, values map[string]string) []string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		for name, value := range values {
			a = strings.ReplaceAll(a, "$("+name+")", value)
		}
		out = append(out, a)
	}
	return out
}

func environ(values map[string]string) []string {
	var out []string
	for name, value := range values {
		out = append(out, name+"="+value)
	}
	return out
}
