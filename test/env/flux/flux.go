package flux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// Namespace is where Flux is installed.
const Namespace = "flux-system"

// The controllers, which are also their ServiceAccounts.
const (
	Source    = "source-controller"
	Kustomize = "kustomize-controller"
)

var controllers = []string{Source, Kustomize}

// Options of an installation.
type Options struct {
	// Cluster gets Flux.
	Cluster *env.Cluster
	// Dir holds kubeconfigs, logs and what Flux stores.
	Dir string
	// Progress hears about programs that have to be built first; may be nil.
	Progress io.Writer
}

// Flux is a running installation.
type Flux struct {
	Options
	// Programs that run, by controller.
	Programs map[string]*env.Program

	client  client.Client
	args    map[string][]string
	probes  map[string]string
	release []func()
}

// Build makes sure that all programs are there, building them if need be,
// which takes minutes the first time.
func Build(ctx context.Context, progress io.Writer) error {
	for _, name := range controllers {
		if _, err := tools.Find(ctx, name, progress); err != nil {
			return err
		}
	}
	return nil
}

// Install installs Flux's CRDs and accounts and starts the controllers. It
// returns when they are ready.
func Install(ctx context.Context, o Options) (*Flux, error) {
	f := &Flux{Options: o, Programs: map[string]*env.Program{}, args: map[string][]string{}, probes: map[string]string{}}
	if err := f.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install Flux on %s: %w", o.Cluster.Name, err), f.Stop())
	}
	return f, nil
}

func (f *Flux) install(ctx context.Context) error {
	for _, dir := range []string{f.storage(), f.scratch()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := InstallCRDs(ctx, f.Cluster.Config); err != nil {
		return err
	}
	var err error
	if f.client, err = client.New(f.Cluster.Config, client.Options{}); err != nil {
		return err
	}
	if err := f.accounts(ctx); err != nil {
		return err
	}
	if err := f.prepare(); err != nil {
		return err
	}
	for _, name := range controllers {
		if err := f.Start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// InstallCRDs installs Flux's definitions alone: nothing acts on their objects.
func InstallCRDs(ctx context.Context, config *rest.Config) error {
	for _, name := range controllers {
		module, err := tools.ModuleDir(ctx, "flux", "github.com/fluxcd/"+name)
		if err != nil {
			return err
		}
		if err := env.InstallCRDsOf(ctx, config, os.DirFS(filepath.Join(module, "config", "crd", "bases"))); err != nil {
			return err
		}
	}
	return nil
}

func (f *Flux) storage() string { return filepath.Join(f.Dir, "artifacts") }
func (f *Flux) scratch() string { return filepath.Join(f.Dir, "tmp") }

// accounts are those of Flux's own installation, which lets them do everything.
func (f *Flux) accounts(ctx context.Context) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-reconciler-" + Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, name := range controllers {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}})
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: Namespace})
	}
	for _, o := range append(objects, binding) {
		if err := client.IgnoreAlreadyExists(f.client.Create(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

// prepare says how the controllers are started: as Flux's own manifests do,
// but for the addresses.
func (f *Flux) prepare() error {
	var addresses [5]string
	for i := range addresses {
		address, release, err := env.ReserveAddress()
		if err != nil {
			return err
		}
		addresses[i], f.release = address, append(f.release, release)
	}
	f.probes = map[string]string{Source: "http://" + addresses[1] + "/readyz", Kustomize: "http://" + addresses[3] + "/readyz"}
	f.args = map[string][]string{
		Source: {
			"--metrics-addr=" + addresses[0], "--health-addr=" + addresses[1],
			"--storage-path=" + f.storage(), "--storage-addr=" + addresses[4], "--storage-adv-addr=" + addresses[4],
		},
		Kustomize: {"--metrics-addr=" + addresses[2], "--health-addr=" + addresses[3], "--requeue-dependency=5s"},
	}
	return nil
}

// Start starts a controller, again after Kill, and returns when it is ready.
func (f *Flux) Start(ctx context.Context, controller string) error {
	path, err := tools.Find(ctx, controller, f.Progress)
	if err != nil {
		return err
	}
	kubeconfig, err := f.Cluster.KubeconfigForServiceAccount(ctx, Namespace, controller)
	if err != nil {
		return err
	}
	file := filepath.Join(f.Dir, controller+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	environment := []string{"KUBECONFIG=" + file, "RUNTIME_NAMESPACE=" + Namespace, "TMPDIR=" + f.scratch(), env.SeldomCollected}
	p, err := env.StartProgramWith(environment, controller, f.Dir, path, f.args[controller]...)
	if err != nil {
		return err
	}
	f.Programs[controller] = p
	return p.Await(ctx, f.probes[controller])
}

// Stop ends both controllers.
func (f *Flux) Stop() error {
	var errs []error
	for _, p := range f.Programs {
		errs = append(errs, p.Kill())
	}
	clear(f.Programs)
	for _, release := range f.release {
		release()
	}
	f.release = nil
	return errors.Join(errs...)
}

// Reconcile asks source-controller to look at every GitRepository at once, as
// Flux's receiver of webhooks does.
func (f *Flux) Reconcile(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepositoryList"})
	if err := f.client.List(ctx, list); err != nil {
		return fmt.Errorf("ask Flux to reconcile: %w", err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano))
	for i := range list.Items {
		if err := f.client.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("ask Flux to reconcile: %w", err)
		}
	}
	return nil
}
