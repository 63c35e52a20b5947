//go:build e2e

package images

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

const release = "v0.9.0-test"

var bin string

func TestMain(m *testing.M) {
	env.BeContainer()
	envtest.Main(m, &bin, env.BuildTools)
}

// tool is the program that makes images, with a registry that it serves.
type tool struct {
	t        *testing.T
	path     string
	checkout string
	registry string
	key      string // its public half is key.pub
}

func newTool(t *testing.T) *tool {
	t.Helper()
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	x := &tool{t: t, path: filepath.Join(t.TempDir(), "images"), checkout: checkout, key: filepath.Join(t.TempDir(), "key")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", x.path, ".")
	build.Dir = filepath.Join(checkout, "test", "tools", "images")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build test/tools/images: %v\n%s", err, out)
	}
	writeKey(t, x.key)
	serve := exec.CommandContext(t.Context(), x.path, "serve")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Wait() }) // its context is cancelled before
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	x.registry = strings.TrimSpace(line)
	return x
}

// writeKey makes a key as openssl does, and its public half.
func writeKey(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{path: {Type: "PRIVATE KEY", Bytes: private}, path + ".pub": {Type: "PUBLIC KEY", Bytes: public}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run is what the tool prints.
func (x *tool) run(args ...string) (string, error) {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), x.path, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		x.t.Logf("images %s: %s", strings.Join(args, " "), errs.String())
	}
	return string(out), err
}

func (x *tool) must(args ...string) string {
	x.t.Helper()
	out, err := x.run(args...)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

// push makes the images of a checkout and pushes them.
func (x *tool) push(checkout, to string) string {
	x.t.Helper()
	return x.must("push", "-insecure", "-checkout", checkout, "-registry", x.registry+"/"+to, "-version", release, "-platforms", "linux/amd64", "-key", x.key)
}

// unpack pulls an image and gives its files and its configuration.
func (x *tool) unpack(reference string) (root string, config imageConfig) {
	x.t.Helper()
	root = filepath.Join(x.t.TempDir(), "root")
	x.must("unpack", "-insecure", "-platforms", "linux/amd64", "-to", root, x.registry+"/"+reference)
	text, err := os.ReadFile(root + ".json")
	if err != nil {
		x.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		x.t.Fatal(err)
	}
	return root, config
}

type imageConfig struct {
	Architecture string
	Config       struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

// TestImages: what a release pushes is signed, states what it is made of, holds nothing
// but the program, runs as the install bases run it, and is made again to the byte in
// another place.
func TestImages(t *testing.T) {
	x := newTool(t)
	pushed := x.push(x.checkout, "acme")
	for _, program := range []string{"fleetbroker", "fleet-agent"} {
		t.Run(program, func(t *testing.T) { x.in(t).isRight(program, pushed) })
	}
	t.Run("as installed", func(t *testing.T) { leadsAnIntentToItsSlice(t, x.in(t)) })
	t.Run("another key", func(t *testing.T) {
		x := x.in(t)
		writeKey(t, x.key+"-other")
		if out, err := x.run("verify", "-insecure", "-key", x.key+"-other.pub", x.registry+"/acme/fleetbroker:"+release); err == nil {
			t.Errorf("another key verifies it: %s", out)
		}
	})
	t.Run("a base without a digest", func(t *testing.T) {
		if out, err := x.in(t).run("push", "-registry", x.registry, "-version", release, "-base", "gcr.io/distroless/static:nonroot"); err == nil {
			t.Errorf("it is taken: %s", out)
		}
	})
	for what, args := range map[string][]string{
		"no registry: name where to push to, for example make images REGISTRY=ghcr.io/acme": {"-version", release},
		"no version: name one, for example VERSION=v0.1.0":                                  {"-registry", x.registry},
		"repository can only contain the characters":                                        {"-registry", "ghcr.io/Acme", "-version", release},
		"tag can only contain the characters":                                               {"-registry", x.registry, "-version", "v1.2.3+rc.1"},
	} {
		t.Run(what, func(t *testing.T) { // said before anything is built: there is no checkout
			out, err := exec.CommandContext(t.Context(), x.path, append([]string{"push", "-checkout", t.TempDir()}, args...)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), what) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	t.Run("made again", func(t *testing.T) {
		again := x.in(t).push(elsewhere(t, x.checkout), "again")
		if got, want := sums(again), sums(pushed); got != want {
			t.Errorf("made in another place: %s\nwant %s", got, want)
		}
	})
}

// in is the tool for a subtest.
func (x *tool) in(t *testing.T) *tool {
	y := *x
	y.t = t
	return &y
}

// isRight verifies, unpacks and runs what was pushed of a program.
func (x *tool) isRight(program, pushed string) {
	t := x.t
	reference := "acme/" + program + ":" + release
	if !strings.Contains(pushed, reference+"@sha256:") {
		t.Fatalf("pushed %q", pushed)
	}
	digest := strings.TrimSpace(x.must("verify", "-insecure", "-key", x.key+".pub", x.registry+"/"+reference))
	if _, sum, _ := strings.Cut(digest, "@"); !strings.Contains(pushed, sum) {
		t.Errorf("verified %s, pushed %s", digest, pushed)
	}
	root, config := x.unpack(reference)
	looksRight(t, program, root, config)
	runs(t, program, root)
}

// sums are the digests of what was pushed.
func sums(pushed string) string {
	var all []string
	for _, line := range strings.Fields(pushed) {
		_, sum, _ := strings.Cut(line, "@")
		all = append(all, sum)
	}
	return strings.Join(all, " ")
}

// elsewhere is the same checkout in another directory, with what is not committed yet.
func elsewhere(t *testing.T, checkout string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "another place")
	git := func(at string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = at
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	git(checkout, "clone", "--quiet", "--shared", ".", dir)
	git(dir, "checkout", "--quiet", strings.TrimSpace(string(git(checkout, "rev-parse", "HEAD"))))
	for _, list := range [][]string{{"diff", "--name-only", "-z", "HEAD"}, {"ls-files", "--others", "--exclude-standard", "-z"}} {
		for _, path := range strings.Split(strings.TrimRight(string(git(checkout, list...)), "\x00"), "\x00") {
			if path == "" {
				continue
			}
			content, err := os.ReadFile(filepath.Join(checkout, path))
			target := filepath.Join(dir, path)
			if os.IsNotExist(err) {
				err = os.Remove(target)
			} else if err == nil {
				if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
					err = os.WriteFile(target, content, 0o644)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// looksRight checks an image's configuration and files.
func looksRight(t *testing.T, program, root string, config imageConfig) {
	t.Helper()
	if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/"+program || config.Architecture != "amd64" {
		t.Errorf("%s is configured as %+v", program, config)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != release {
		t.Errorf("%s has version %q", program, got)
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files = append(files, strings.TrimPrefix(path, root))
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s can be written to", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(files, " "), "/etc/group /etc/passwd /etc/ssl/certs/ca-certificates.crt /"+program; got != want {
		t.Errorf("%s holds %s, want %s", program, got, want)
	}
	roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots) {
		t.Error("the roots of certificates cannot be read")
	}
}

// runs runs the program's version as its container would.
func runs(t *testing.T, program, root string) {
	t.Helper()
	logs := t.TempDir()
	p, err := env.StartContainer(env.Container{Name: program, Dir: logs, Root: root, Args: []string{"/" + program, "version"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		t.Fatal("it does not end")
	}
	out, err := os.ReadFile(p.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), program+" "+release+" ") {
		t.Errorf("it says %q", out)
	}
}
