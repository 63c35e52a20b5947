package argo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// Namespace is where Argo CD is installed.
const Namespace = "argocd"

// The programs, by which Programs knows them. The controllers are also ServiceAccounts.
const (
	Controller     = "argocd-application-controller"
	ApplicationSet = "argocd-applicationset-controller"
	RepoServer     = "argocd-repo-server"
	Redis          = "miniredis"
)

// module is Argo CD's.
const module = "github.com/argoproj/argo-cd/v3"

// Options of an installation.
type Options struct {
	// Cluster gets Argo CD.
	Cluster *env.Cluster
	// Dir holds kubeconfigs, logs and what the repo server fetches.
	Dir string
	// Progress hears about programs that have to be built first; may be nil.
	Progress io.Writer
}

// Argo is a running installation.
type Argo struct {
	Options
	// Programs that run, by name.
	Programs map[string]*env.Program

	client    client.Client
	addresses map[string]string
	bin       string // directory of argocd and kustomize, which the repo server looks for
	release   []func()
}

// Build makes sure that all programs are there, building them if need be,
// which takes many minutes the first time.
func Build(ctx context.Context, progress io.Writer) error {
	for _, name := range []string{Redis, "kustomize", "argocd"} {
		if _, err := tools.Find(ctx, name, progress); err != nil {
			return err
		}
	}
	return nil
}

// Install installs Argo CD and starts its programs. It returns when they are
// ready.
func Install(ctx context.Context, o Options) (*Argo, error) {
	a := &Argo{Options: o, Programs: map[string]*env.Program{}, addresses: map[string]string{}}
	if err := a.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install Argo CD on %s: %w", o.Cluster.Name, err), a.Stop())
	}
	return a, nil
}

func (a *Argo) install(ctx context.Context) error {
	for _, dir := range []string{"bin", "tmp", "home", "tls", "ssh"} {
		if err := os.MkdirAll(filepath.Join(a.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	var err error
	if a.client, err = client.New(a.Cluster.Config, client.Options{}); err != nil {
		return err
	}
	if err := a.objects(ctx); err != nil {
		return err
	}
	for _, name := range []string{"redis", "repo", "repo-metrics", "controller-metrics", "set-metrics", "set-probe", "set-webhook"} {
		address, release, err := env.ReserveAddress()
		if err != nil {
			return err
		}
		a.addresses[name], a.release = address, append(a.release, release)
	}
	path, err := tools.Find(ctx, "kustomize", a.Progress)
	if err != nil {
		return err
	}
	a.bin = filepath.Dir(path)
	for _, start := range []func(context.Context) error{a.redis, a.repoServer, a.controller, a.applicationSet} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// objects applies what Argo CD's install.yaml has, but for what would run there.
func (a *Argo) objects(ctx context.Context) error {
	dir, err := tools.ModuleDir(ctx, "argo", module)
	if err != nil {
		return err
	}
	all, err := os.ReadFile(filepath.Join(dir, "manifests", "install.yaml"))
	if err != nil {
		return err
	}
	var kept [][]byte
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, text := range bytes.Split(all, []byte("\n---\n")) {
		var object metav1.TypeMeta
		if err := yaml.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("read %s's install.yaml: %w", module, err)
		}
		if object.Kind == "CustomResourceDefinition" {
			crd := new(apiextensionsv1.CustomResourceDefinition)
			if err := yaml.UnmarshalStrict(text, crd); err != nil {
				return fmt.Errorf("read %s's install.yaml: %w", module, err)
			}
			crds = append(crds, crd)
		} else if !slices.Contains([]string{"", "Service", "Deployment", "StatefulSet", "NetworkPolicy"}, object.Kind) {
			kept = append(kept, text)
		}
	}
	file := filepath.Join(a.Dir, "install.yaml")
	if err := os.WriteFile(file, bytes.Join(kept, []byte("\n---\n")), 0o600); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(a.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})); err != nil {
		return err
	}
	if err := env.InstallCRDs(ctx, a.Cluster.Config, crds...); err != nil {
		return err
	}
	if _, err := a.Cluster.Kubectl(ctx, a.Dir, "apply", "--server-side", "-n", Namespace, "-f", file); err != nil {
		return err
	}
	// Argo CD's API server would make it.
	if _, err := a.Cluster.Kubectl(ctx, a.Dir, "patch", "secret", "argocd-secret", "-n", Namespace, "-p", `{"stringData":{"server.secretkey":"of this test only"}}`); err != nil {
		return err
	}
	return a.wrapper(dir)
}

// wrapper lays a script of Argo CD's image where its repo server finds it.
func (a *Argo) wrapper(module string) error {
	const name = "git-verify-wrapper.sh"
	text, err := os.ReadFile(filepath.Join(module, "hack", name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.Dir, "bin", name), text, 0o755) //nolint:gosec // it is run
}

// start runs one of the programs.
func (a *Argo) start(ctx context.Context, name, program string, environment []string, args ...string) (*env.Program, error) {
	path, err := tools.Find(ctx, program, a.Progress)
	if err != nil {
		return nil, err
	}
	environment = append(environment,
		"ARGOCD_BINARY_NAME="+name, "ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_TLS_DATA_PATH="+filepath.Join(a.Dir, "tls"), "ARGOCD_SSH_DATA_PATH="+filepath.Join(a.Dir, "ssh"),
		"ARGOCD_ASK_PASS_SOCK="+filepath.Join(a.Dir, "tmp", "ask-pass.sock"),
		"TMPDIR="+filepath.Join(a.Dir, "tmp"), "HOME="+filepath.Join(a.Dir, "home"),
		"PATH="+strings.Join([]string{a.bin, filepath.Join(a.Dir, "bin"), os.Getenv("PATH")}, string(os.PathListSeparator)), env.SeldomCollected)
	p, err := env.StartProgramWith(environment, name, a.Dir, path, args...)
	if err == nil {
		a.Programs[name] = p
	}
	return p, err
}

func (a *Argo) redis(ctx context.Context) error {
	_, err := a.start(ctx, Redis, Redis, nil, "-address", a.addresses["redis"])
	return err
}

func (a *Argo) repoServer(ctx context.Context) error {
	host, port, err := net.SplitHostPort(a.addresses["repo"])
	if err != nil {
		return err
	}
	metricsHost, metricsPort, err := net.SplitHostPort(a.addresses["repo-metrics"])
	if err != nil {
		return err
	}
	p, err := a.start(ctx, RepoServer, "argocd", nil, "--address", host, "--port", port, "--metrics-address", metricsHost, "--metrics-port", metricsPort, "--redis", a.addresses["redis"], "--revision-cache-expiration", "5s")
	if err != nil {
		return err
	}
	return p.Await(ctx, "http://"+a.addresses["repo-metrics"]+"/healthz?full=true")
}

// controller applies. Each resource's health is kept in the Application's status, where
// kubectl shows it.
func (a *Argo) controller(ctx context.Context) error {
	environment, err := a.account(ctx, Controller)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(a.addresses["controller-metrics"])
	if err != nil {
		return err
	}
	p, err := a.start(ctx, Controller, "argocd", environment, "--namespace", Namespace, "--metrics-port", port,
		"--repo-server", a.addresses["repo"], "--redis", a.addresses["redis"], "--persist-resource-health",
		"--app-resync", "10", "--app-resync-jitter", "0") // a refresh that is asked for while another runs is lost
	if err != nil {
		return err
	}
	return p.Await(ctx, "http://127.0.0.1:"+port+"/healthz")
}

func (a *Argo) applicationSet(ctx context.Context) error {
	environment, err := a.account(ctx, ApplicationSet)
	if err != nil {
		return err
	}
	p, err := a.start(ctx, ApplicationSet, "argocd", environment, "--namespace", Namespace, "--argocd-repo-server", a.addresses["repo"],
		"--metrics-addr", a.addresses["set-metrics"], "--probe-addr", a.addresses["set-probe"], "--webhook-addr", a.addresses["set-webhook"])
	if err != nil {
		return err
	}
	return p.Await(ctx, "http://"+a.addresses["set-metrics"]+"/metrics") // its probe serves no path
}

// account is the environment by which a program acts as its ServiceAccount.
func (a *Argo) account(ctx context.Context, name string) ([]string, error) {
	kubeconfig, err := a.Cluster.KubeconfigForServiceAccount(ctx, Namespace, name)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(a.Dir, name+".kubeconfig")
	return []string{"KUBECONFIG=" + file}, os.WriteFile(file, kubeconfig, 0o600)
}

// Stop ends all programs.
func (a *Argo) Stop() error {
	var errs []error
	for _, p := range a.Programs {
		errs = append(errs, p.Kill())
	}
	clear(a.Programs)
	for _, release := range a.release {
		release()
	}
	a.release = nil
	return errors.Join(errs...)
}

// Refresh asks Argo CD to look at every Application and ApplicationSet at once, as its
// webhook does.
func (a *Argo) Refresh(ctx context.Context) error {
	for kind, patch := range map[string]string{
		"Application":    `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`,
		"ApplicationSet": `{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":"true"}}}`,
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: kind + "List"})
		if err := a.client.List(ctx, list, client.InNamespace(Namespace)); err != nil {
			return fmt.Errorf("ask Argo CD to refresh: %w", err)
		}
		for i := range list.Items {
			if err := client.IgnoreNotFound(a.client.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(patch)))); err != nil {
				return fmt.Errorf("ask Argo CD to refresh: %w", err)
			}
		}
	}
	return nil
}

// manager is the account by which Argo CD reaches another cluster, as `argocd cluster
// add` makes it there.
const manager = `apiVersion: v1
kind: ServiceAccount
metadata: {name: argocd-manager, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: argocd-manager-role}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: argocd-manager-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: argocd-manager-role}
subjects: [{kind: ServiceAccount, name: argocd-manager, namespace: kube-system}]
`

// AddCluster lets Argo CD reach another cluster: an account there, and a Secret with its
// token here.
func (a *Argo) AddCluster(ctx context.Context, spoke *env.Cluster) error {
	file := filepath.Join(a.Dir, "manager-"+spoke.Name+".yaml")
	if err := os.WriteFile(file, []byte(manager), 0o600); err != nil {
		return err
	}
	if _, err := spoke.Kubectl(ctx, a.Dir, "apply", "--server-side", "-f", file); err != nil {
		return err
	}
	token, err := spoke.Kubectl(ctx, a.Dir, "create", "token", "argocd-manager", "-n", "kube-system")
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(map[string]any{"bearerToken": strings.TrimSpace(token), "tlsClientConfig": map[string]any{"caData": spoke.CA}})
	if err != nil {
		return err
	}
	if config, err = yaml.YAMLToJSON(config); err != nil {
		return err
	}
	return a.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + spoke.Name, Namespace: Namespace, Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}},
		StringData: map[string]string{"name": spoke.Name, "server": spoke.URL, "config": string(config)},
	})
}
