package cli_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ciFiles are the CI files by forge.
var ciFiles = map[string]string{"github": ".github/workflows/fleet.yml", "gitea": ".gitea/workflows/fleet.yml", "gitlab": ".gitlab-ci.yml"}

// installer is a CI file's script that installs the program, and where it puts it.
type installer struct {
	*ci
	script, bin string
	env         map[string]string
}

func newInstaller(t *testing.T, name string) *installer {
	t.Helper()
	c := &installer{ci: newCI(t, name, ciFiles[name])}
	home := t.TempDir()
	c.env = map[string]string{
		"FLEETBROKER_VERSION": "v0.1.0", "FLEETBROKER_RELEASES": "", "FLEETBROKER_SUM": "",
		"HOME": home, "GITHUB_PATH": filepath.Join(home, "path"), "RUNNER_TEMP": t.TempDir(),
	}
	if name == "gitlab" {
		var w struct {
			Shared struct {
				Before []string `json:"before_script"`
			} `json:".fleetbroker"`
		}
		if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &w); err != nil {
			t.Fatal(err)
		}
		c.script, c.bin = w.Shared.Before[0], filepath.Join(c.dir, ".fleetbroker-ci")
		if err := os.RemoveAll(c.bin); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var w struct{ Jobs map[string]job }
	if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &w); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Jobs["plan"].Steps {
		if s.Name == "install" {
			c.script, c.bin = s.Run, filepath.Join(home, ".cache", "fleetbroker-ci")
		}
	}
	return c
}

// run runs the script and reports whether the program is there afterwards.
func (c *installer) run() (installed bool, err error) {
	c.out.Reset()
	err = c.shell(c.script, c.env)
	_, statErr := os.Stat(filepath.Join(c.bin, "fleetbroker"))
	return statErr == nil, err
}

// The step that installs the program takes the version that is written there,
// and none whose checksum is another.
func TestWorkflows_InstallByVersionAndChecksum(t *testing.T) {
	proxy := moduleProxy(t)
	for name := range ciFiles {
		t.Run(name, func(t *testing.T) {
			c := newInstaller(t, name)
			for key, value := range map[string]string{"GOPROXY": "file://" + proxy, "GONOSUMDB": "*", "GOSUMDB": "off", "GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir(), "GOCACHE": goCache(t)} {
				c.env[key] = value
			}
			c.env["FLEETBROKER_SUM"] = "h1:another="
			if installed, err := c.run(); err == nil || installed || !strings.Contains(c.out.String(), "want h1:another=") {
				t.Errorf("another checksum: installed %v, %v\n%s", installed, err, c.out.String())
			}
			_, sum, _ := strings.Cut(c.out.String(), "has the checksum ")
			c.env["FLEETBROKER_SUM"], _, _ = strings.Cut(sum, ",")
			if installed, err := c.run(); err != nil || !installed || !strings.HasPrefix(c.env["FLEETBROKER_SUM"], "h1:") {
				t.Errorf("checksum %s: installed %v, %v\n%s", c.env["FLEETBROKER_SUM"], installed, err, c.out.String())
			}
		})
	}
}

// goCache is the cache of builds, which follows HOME otherwise.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// With a URL of releases the archive of that version is taken, once: afterwards it is in the
// cache. Neither one of another checksum is, nor one that SHA256SUMS does not list.
func TestWorkflows_InstallFromReleases(t *testing.T) {
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	file := "fleetbroker_v0.1.0_linux_" + arch + ".tar.gz"
	archive := tarOf(t, "fleetbroker", "#!/bin/sh\necho v0.1.0\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	for name := range ciFiles {
		t.Run(name, func(t *testing.T) {
			sums, asked := sum+"  "+file+"\n", 0
			releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch asked++; r.URL.Path {
				case "/dl/v0.1.0/" + file:
					_, _ = w.Write(archive)
				case "/dl/v0.1.0/SHA256SUMS":
					_, _ = w.Write([]byte(sums))
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(releases.Close)
			c := newInstaller(t, name)
			c.env["FLEETBROKER_RELEASES"] = releases.URL + "/dl"
			c.env["FLEETBROKER_SUM"] = "sha256:00"
			if installed, err := c.run(); err == nil || installed || !strings.Contains(c.out.String(), "has the checksum sha256:"+sum+", want sha256:00") {
				t.Errorf("another checksum: installed %v, %v\n%s", installed, err, c.out.String())
			}
			c.env["FLEETBROKER_SUM"] = ""
			for what, wrong := range map[string]string{"unlisted": sum + "  another.tar.gz\n", "another's": strings.Repeat("0", 64) + "  " + file + "\n"} {
				sums = wrong
				if installed, err := c.run(); err == nil || installed {
					t.Errorf("%s: installed %v, %v\n%s", what, installed, err, c.out.String())
				}
			}
			c.env["FLEETBROKER_SUM"], sums = "sha256:"+sum, sum+"  "+file+"\n"
			if installed, err := c.run(); err != nil || !installed {
				t.Fatalf("installed %v, %v\n%s", installed, err, c.out.String())
			}
			if out, err := exec.Command(filepath.Join(c.bin, "fleetbroker")).Output(); err != nil || string(out) != "v0.1.0\n" {
				t.Errorf("the program prints %q, %v", out, err)
			}
			asked = 0
			if installed, err := c.run(); err != nil || !installed || asked > 0 {
				t.Errorf("with a cache: %d requests, %v\n%s", asked, err, c.out.String())
			}
			if path, err := os.ReadFile(c.env["GITHUB_PATH"]); name != "gitlab" && (err != nil || !strings.Contains(string(path), c.bin)) {
				t.Errorf("it is not on the PATH: %s, %v", path, err)
			}
		})
	}
}

// A branch that brings a program of its own for GitLab's cache gets nowhere.
func TestWorkflows_NoProgramOfTheBranch(t *testing.T) {
	c := newInstaller(t, "gitlab")
	if err := os.MkdirAll(c.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.bin, "fleetbroker"), []byte("#!/bin/sh\necho mine\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := c.command(nil, "git", "-C", c.dir, "add", "-f", ".fleetbroker-ci").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := c.run(); err == nil || !strings.Contains(c.out.String(), "delete it") {
		t.Errorf("it takes the branch's: %v\n%s", err, c.out.String())
	}
}

// tarOf is a .tar.gz with one program.
func tarOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// moduleProxy serves one version of a small module by our name.
func moduleProxy(t *testing.T) string {
	t.Helper()
	const module = "github.com/fleetbroker/fleetbroker"
	dir := t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mod := "module " + module + "\n\ngo 1.26\n"
	for name, content := range map[string]string{"list": "v0.1.0\n", "v0.1.0.info": `{"Version": "v0.1.0"}`, "v0.1.0.mod": mod} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(at, "v0.1.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, content := range map[string]string{"go.mod": mod, "cmd/fleetbroker/main.go": "package main\n\nfunc main() {}\n"} {
		w, err := z.Create(module + "@v0.1.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
