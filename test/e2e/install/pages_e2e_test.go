//go:build e2e

package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// url is the fleet repo's in the pages.
const url = "https://git.example.org/acme/fleet.git"

var fence = regexp.MustCompile("(?ms)^```\n(.*?)^```$")

// book runs the blocks of a page of the docs, in the page's order.
type book struct {
	t      *testing.T
	blocks []string
	dir    string   // where they run
	env    []string // over the process's
	url    string   // of the fleet repo
}

// open reads a page, of which a test must run each block.
func open(t *testing.T, page, repo string, clusters map[string]*env.Cluster) *book {
	t.Helper()
	text, err := os.ReadFile("../../../fleet-repo-template/docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	b := &book{t: t, dir: t.TempDir(), url: repo}
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		b.blocks = append(b.blocks, m[1])
	}
	config := clientcmdapi.NewConfig()
	for name, c := range clusters {
		text, err := c.KubeconfigFor("admin", "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		one, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		at := one.Contexts[one.CurrentContext]
		config.Clusters[name], config.AuthInfos[name] = one.Clusters[at.Cluster], one.AuthInfos[at.AuthInfo]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	b.env = []string{
		"KUBECONFIG=" + kubeconfig, "GIT_CONFIG_NOSYSTEM=1", "HOME=" + b.dir,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	t.Cleanup(func() {
		if len(b.blocks) > 0 && !t.Failed() {
			t.Errorf("%s: %d blocks were not run, the first of them\n%s", page, len(b.blocks), b.blocks[0])
		}
	})
	return b
}

// next runs the next block, which must have a text, with the programs of a directory.
func (b *book) next(programs, has string) string {
	b.t.Helper()
	if len(b.blocks) == 0 || !strings.Contains(b.blocks[0], has) {
		b.t.Fatalf("the next block has no %q: %q", has, b.blocks)
	}
	block := strings.ReplaceAll(b.blocks[0], url, b.url)
	b.blocks = b.blocks[1:]
	cmd := exec.CommandContext(b.t.Context(), "bash", "-euo", "pipefail", "-c", block)
	cmd.Dir, cmd.Env = b.dir, append(append(os.Environ(), "PATH="+programs+":"+kubectlDir(b.t)+":"+os.Getenv("PATH")), b.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s\n%v\n%s", block, err, out)
	}
	return string(out)
}

// kubectlDir is a directory with the kubectl that package env uses.
func kubectlDir(t *testing.T) string {
	t.Helper()
	path, err := tools.Find(t.Context(), "kubectl", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

// older builds the program as an older version: with another stamp, and a template in which
// two files were otherwise and one is gone since.
func older(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for name, content := range map[string]string{
		"docs/scale.md": "# How it was\n", "docs/gone.md": "# Was here\n", "docs/limits.md": "# Limits as they were\n",
		"install/agent/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: fleet-agent-metrics\nspec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector: {app.kubernetes.io/name: fleet-agent}\n  ports:\n  - {name: metrics, port: 9999, targetPort: metrics}\n",
	} {
		at := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(root, "fleet-repo-template", name)] = at
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bin")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-ldflags", "-X github.com/fleetbroker/fleetbroker/internal/api/version.stamp=v0.0.9", "-o", out+"/", "./cmd/fleetbroker")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build an older version: %v\n%s", err, said)
	}
	return out
}

// TestPage_Upgrade runs docs/upgrade.md: a repo and clusters of an older version, with
// edits, come to this one and go back, and the edits stay.
func TestPage_Upgrade(t *testing.T) {
	before := older(t)
	rome, paris := bare(t, "rome"), bare(t, "paris")
	remote := filepath.Join(t.TempDir(), "fleet.git")
	b := open(t, "upgrade.md", "file://"+remote, map[string]*env.Cluster{"rome": rome, "paris": paris})
	lay := exec.CommandContext(t.Context(), "bash", "-euc", `
git init -q --bare -b main `+remote+`
fleetbroker init fleet
cd fleet
sed -i 's#https://broker.example.org:8443#https://broker.acme.example:8443#' install/agent/deployment.yaml
sed -i 's#registry.example.org/fleet-agent#ghcr.io/acme/fleet-agent#' install/agent/kustomization.yaml
echo "# ours" >> docs/limits.md
for c in rome paris; do fleetbroker install $c -o install/clusters/$c; kubectl --context $c apply -k install/clusters/$c; done
echo "# ours" >> install/clusters/paris/kustomization.yaml
git init -q -b main && git add -A && git commit -qm Fleet && git push -q `+remote+` main
`)
	lay.Dir, lay.Env = b.dir, append(append(os.Environ(), "PATH="+before+":"+kubectlDir(t)+":"+os.Getenv("PATH")), b.env...)
	if out, err := lay.CombinedOutput(); err != nil {
		t.Fatalf("lay the older fleet: %v\n%s", err, out)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(b.dir, "live", name))
		if errors.Is(err, os.ErrNotExist) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	port := func() string {
		t.Helper()
		out, err := paris.Kubectl(t.Context(), ".", "-n", "fleetbroker", "get", "service", "fleet-agent-metrics", "-o", "jsonpath={.spec.ports[0].port}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if port() != "9999" {
		t.Fatalf("before the upgrade the port is %s", port())
	}
	b.next(bin, "validate live")
	out := b.next(bin, "init --update")
	if !strings.Contains(out, "from v0.0.9 to ") || !strings.Contains(out, "kept: docs/limits.md was edited") {
		t.Errorf("the update said %s", out)
	}
	if !strings.HasPrefix(read("docs/scale.md"), "# ") || read("docs/scale.md") == "# How it was\n" || read("docs/gone.md") != "" || !strings.HasSuffix(read("docs/limits.md"), "# ours\n") || read("docs/limits.md.new") == "" {
		t.Error("the files of the repo are not those of this version, with the edits")
	}
	if !strings.Contains(read("install/agent/deployment.yaml"), "https://broker.acme.example:8443") || !strings.HasSuffix(read("install/clusters/paris/kustomization.yaml"), "# ours\n") {
		t.Error("an edit was overwritten")
	}
	b.next(bin, "apply -k")
	if port() == "9999" {
		t.Error("after the upgrade the cluster has the older Service")
	}
	back := b.next(before, "older version")
	if !strings.Contains(back, "kept: docs/limits.md was edited") || read("docs/scale.md") != "# How it was\n" || read("docs/gone.md") != "# Was here\n" || !strings.HasSuffix(read("docs/limits.md"), "# ours\n") || port() != "9999" {
		t.Errorf("going back left port %s and said %s", port(), back)
	}
	if log, err := exec.CommandContext(t.Context(), "git", "-C", remote, "log", "--format=%s", "main").Output(); err != nil || string(log) != "Files of the older version\nFiles of the new version\nFleet\n" {
		t.Errorf("main has %q, %v", log, err)
	}
}

// held places a contract and waits for its slice.
func (f *fleet) held(d *rig.Daemon) {
	f.t.Helper()
	if _, err := f.Agent(f.ctx, "paris", d); err != nil {
		f.t.Fatal(err)
	}
	if err := d.AwaitReady(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.push("Ask", map[string]string{"intents/vision/train.yaml": train})
	f.eventually("the slice on the consumer", func() error { return f.slices("vision-train-0-") })
}

func (f *fleet) slices(want string) error {
	out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "name")
	if err == nil && !strings.Contains(out, want) {
		err = fmt.Errorf("there are %q", out)
	}
	return err
}
