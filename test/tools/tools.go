package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
)

// Versions of the programs. Each is repeated in the module's go.mod; a test
// holds the two equal.
const (
	EtcdVersion       = "v3.6.16"
	KubernetesVersion = "v1.36.3"
	Kubernetes133     = "v1.33.5"
	Kubernetes130     = "v1.30.14"
	LiqoVersion       = "v1.2.0"
	HelmVersion       = "v3.16.2" // what Liqo requires
	KwokVersion       = "v0.7.0"
	FluxVersion       = "v1.9.3" // of its controllers
	GiteaVersion      = "v1.26.4"
	GolangciVersion   = "v2.15.0"
	ActionlintVersion = "v1.7.12"
	VulnVersion       = "v1.9.0" // govulncheck
	PrometheusVersion = "v0.316.0"
	ArgoVersion       = "v3.5.7"  // of Argo CD's controllers
	KustomizeVersion  = "v5.8.1"  // what Argo CD's own image holds
	MiniredisVersion  = "v2.40.0" // Argo CD's Redis
)

// Environment variables that say where programs are.
const (
	// AssetsEnv names a directory of ready-made Kubernetes test programs, as
	// controller-runtime's envtest uses it.
	AssetsEnv = "KUBEBUILDER_ASSETS"
	// CacheEnv moves the cache of built programs.
	CacheEnv = "FLEETBROKER_TOOLS_DIR"
)

// program is one executable and the package it is built from.
type program struct {
	module  string // directory under test/tools
	version string
	pkg     string
	comes   string // the version of pkg, where it comes along with another module
	of      string // the module that has version comes, where pkg is a program of ours
	tags    string // build tags
	cgo     bool   // it needs a C compiler
	onPath  bool   // a copy on PATH is good enough
	assets  bool   // may be in KUBEBUILDER_ASSETS
	envtest bool   // envtest's own assets hold it: where the variable is set it must be there
}

// stamp is the linker flags that tell Kubernetes's programs their version, as
// its own build does: clients ask a server for it, and without it it says
// v0.0.0-master.
func (p program) stamp() string {
	if !strings.HasPrefix(p.module, "kubernetes") {
		return ""
	}
	const pkg = "k8s.io/component-base/version"
	parts := strings.SplitN(strings.TrimPrefix(p.version, "v"), ".", 3)
	return fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, p.version, parts[0], parts[1])
}

var programs = map[string]program{
	"etcd":                         {module: "etcd", version: EtcdVersion, pkg: "go.etcd.io/etcd/server/v3", assets: true, envtest: true},
	"kube-apiserver":               {module: "kubernetes", version: KubernetesVersion, pkg: "k8s.io/kubernetes/cmd/kube-apiserver", assets: true, envtest: true},
	"kube-controller-manager":      {module: "kubernetes", version: KubernetesVersion, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", assets: true},
	"kube-scheduler":               {module: "kubernetes", version: KubernetesVersion, pkg: "k8s.io/kubernetes/cmd/kube-scheduler", assets: true},
	"kubectl":                      {module: "kubernetes", version: KubernetesVersion, pkg: "k8s.io/kubernetes/cmd/kubectl", assets: true, onPath: true},
	"kube-apiserver-1.33":          {module: "kubernetes-1.33", version: Kubernetes133, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	"kube-controller-manager-1.33": {module: "kubernetes-1.33", version: Kubernetes133, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	"kube-scheduler-1.33":          {module: "kubernetes-1.33", version: Kubernetes133, pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
	"kube-apiserver-1.30":          {module: "kubernetes-1.30", version: Kubernetes130, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	"kube-controller-manager-1.30": {module: "kubernetes-1.30", version: Kubernetes130, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	"kube-scheduler-1.30":          {module: "kubernetes-1.30", version: Kubernetes130, pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
	"liqo-controller-manager":      {module: "liqo", version: LiqoVersion, pkg: "github.com/liqotech/liqo/cmd/liqo-controller-manager"},
	"liqo-crd-replicator":          {module: "liqo", version: LiqoVersion, pkg: "github.com/liqotech/liqo/cmd/crd-replicator"},
	"liqo-virtual-kubelet":         {module: "liqo", version: LiqoVersion, pkg: "github.com/liqotech/liqo/cmd/virtual-kubelet"},
	"liqo-webhook":                 {module: "liqo", version: LiqoVersion, pkg: "github.com/liqotech/liqo/cmd/webhook"},
	"helm":                         {module: "liqo", version: LiqoVersion, pkg: "helm.sh/helm/v3/cmd/helm", comes: HelmVersion},
	"kwok":                         {module: "kwok", version: KwokVersion, pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	"source-controller":            {module: "flux", version: FluxVersion, pkg: "github.com/fluxcd/source-controller"},
	"kustomize-controller":         {module: "flux", version: FluxVersion, pkg: "github.com/fluxcd/kustomize-controller"},
	"gitea":                        {module: "gitea", version: GiteaVersion, pkg: "code.gitea.io/gitea", tags: "sqlite sqlite_unlock_notify", cgo: true},
	"golangci-lint":                {module: "golangci", version: GolangciVersion, pkg: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"},
	"govulncheck":                  {module: "govulncheck", version: VulnVersion, pkg: "golang.org/x/vuln/cmd/govulncheck"},
	"promtool":                     {module: "prometheus", version: PrometheusVersion, pkg: "github.com/prometheus/prometheus/cmd/promtool"},
	"actionlint":                   {module: "actionlint", version: ActionlintVersion, pkg: "github.com/rhysd/actionlint/cmd/actionlint"},
	"argocd":                       {module: "argo", version: ArgoVersion, pkg: modulePath + "/test/tools/argo/argocd", of: "github.com/argoproj/argo-cd/v3"},
	"kustomize":                    {module: "argo", version: ArgoVersion, pkg: "sigs.k8s.io/kustomize/kustomize/v5", comes: KustomizeVersion},
	"miniredis":                    {module: "argo", version: ArgoVersion, pkg: modulePath + "/test/tools/argo/miniredis", comes: MiniredisVersion, of: "github.com/alicebob/miniredis/v2"},
}

// Default lists the programs the end-to-end tests and the demo need.
func Default() []string {
	return []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl",
		"liqo-controller-manager", "liqo-crd-replicator", "liqo-virtual-kubelet", "liqo-webhook", "helm", "kwok",
		"source-controller", "kustomize-controller",
		"argocd", "kustomize", "miniredis",
		"gitea",
	}
}

// Older lists the servers of older Kubernetes that make test-full tries too.
func Older() []string {
	var names []string
	for _, version := range []string{"1.30", "1.33"} {
		for _, server := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			names = append(names, server+"-"+version)
		}
	}
	return names
}

// Names lists every program this package can build, sorted.
func Names() []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Find returns the path of a program, building it when it is nowhere to be
// found. A build takes minutes; what it is doing is written to progress, which
// may be nil.
func Find(ctx context.Context, name string, progress io.Writer) (string, error) {
	p, ok := programs[name]
	if !ok {
		return "", fmt.Errorf("find test program %s: unknown; known are %s", name, strings.Join(Names(), ", "))
	}
	if dir := os.Getenv(AssetsEnv); dir != "" && p.assets {
		path, err := executable(filepath.Join(dir, name))
		if err == nil || p.envtest {
			return path, wrapAssets(name, err)
		}
	}
	if p.onPath {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(dir, p.module+"-"+p.version+"-"+goVersion())
	target := filepath.Join(home, "bin", name)
	if path, err := executable(target); err == nil {
		return path, nil
	}
	if progress == nil {
		progress = io.Discard
	}
	return target, build(ctx, name, p, home, progress)
}

func wrapAssets(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("find test program %s: %s is set but does not hold it (unset it to build from source): %w", name, AssetsEnv, err)
}

// CacheDir is where built programs are kept, outside any checkout.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache of test programs (set %s): %w", CacheEnv, err)
	}
	return filepath.Join(dir, "fleetbroker", "tools"), nil
}

// ModuleDir is where the files of a Go module lie that one of the modules of
// this directory requires: Liqo's brings its chart, Flux's their CRDs.
func ModuleDir(ctx context.Context, of, module string) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", fmt.Errorf("find the files of %s: %w", module, err)
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = filepath.Join(root, "test", "tools", of)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the files of %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("find the files of %s: they have not been fetched: run `make tools`", module)
	}
	return dir, nil
}

// executable returns path when a file that may be run is there.
func executable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s is not executable", path)
	}
	return path, nil
}

// goVersion is the Go this program was built with, as a directory name: an
// experimental toolchain's version has spaces in it.
func goVersion() string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ':' {
			return '_'
		}
		return r
	}, runtime.Version())
}

// modulePath is how a checkout of this project is told from any other.
const modulePath = "github.com/fleetbroker/fleetbroker"

var errNoCheckout = errors.New("not inside a checkout of " + modulePath)

// Checkout returns the root of the checkout that the working directory is in.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+modulePath+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errNoCheckout
		}
		dir = parent
	}
}
