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
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"
)

// ciFiles are the CI files by forge.
var ciFiles = map[string]string{"github": ".github/workflows/fleet.yml", "gitea": ".gitea/workflows/fleet.yml", "gitlab": ".gitlab-ci.yml"}

// installer is a CI file's script that installs the program.
type installer struct {
	*ci
	script string
	env    map[string]string
}

func newInstaller(t *testing.T, name string) *installer {
	t.Helper()
	c := &installer{ci: newCI(t, name, ciFiles[name])}
	c.env = map[string]string{
		"FLEETBROKER_VERSION": "v0.1.0", "FLEETBROKER_RELEASES": "", "FLEETBROKER_SUM": "",
		"HOME": t.TempDir(), "RUNNER_TEMP": t.TempDir(), "fleetbroker": "",
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
		c.script = w.Shared.Before[0]
		return c
	}
	var w struct{ Jobs map[string]job }
	if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &w); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Jobs["plan"].Steps {
		if s.Name == "install" {
			c.script = s.Run + "\n" + `fleetbroker="$RUNNER_TEMP/fleetbroker-ci/fleetbroker"`
		}
	}
	return c
}

// run runs the script and then the program, as the steps after it call it.
func (c *installer) run() (installed bool, err error) {
	c.out.Reset()
	err = c.shell(c.script+"\n"+`echo "installed: $("$fleetbroker")"`, c.env)
	return strings.Contains(c.out.String(), "installed: v0.1.0\n"), err
}

// The step that installs the program takes the version that is written there,
// and none whose checksum is another.
func TestWorkflows_InstallByVersionAndChecksum(t *testing.T) {
	t.Parallel()
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

// archiveName is a release's archive for this machine.
var archiveName = "fleetbroker_v0.1.0_linux_" + map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH] + ".tar.gz"

// releases serves one version: an archive, and what sums gives as SHA256SUMS. asked counts.
func releases(t *testing.T, archive []byte, sums *string, asked *int) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch *asked++; r.URL.Path {
		case "/dl/v0.1.0/" + archiveName:
			_, _ = w.Write(archive)
		case "/dl/v0.1.0/SHA256SUMS":
			_, _ = w.Write([]byte(*sums))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/dl"
}

// With a URL of releases the archive of that version is taken. Neither one of another
// checksum is, nor one that SHA256SUMS does not list. GitHub's cache keeps the archive where
// there is a checksum, and nothing without; the others have none.
func TestWorkflows_InstallFromReleases(t *testing.T) {
	t.Parallel()
	archive := tarOf(t, "fleetbroker", "#!/bin/sh\necho v0.1.0\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	for name := range ciFiles {
		t.Run(name, func(t *testing.T) {
			sums, asked := sum+"  "+archiveName+"\n", 0
			c := newInstaller(t, name)
			c.env["FLEETBROKER_RELEASES"] = releases(t, archive, &sums, &asked)
			c.env["FLEETBROKER_SUM"] = "sha256:00"
			if installed, err := c.run(); err == nil || installed || !strings.Contains(c.out.String(), "has the checksum sha256:"+sum+", want sha256:00") {
				t.Errorf("another checksum: installed %v, %v\n%s", installed, err, c.out.String())
			}
			c.env["FLEETBROKER_SUM"] = ""
			for what, wrong := range map[string]string{"unlisted": sum + "  another.tar.gz\n", "another's": strings.Repeat("0", 64) + "  " + archiveName + "\n"} {
				sums = wrong
				if installed, err := c.run(); err == nil || installed {
					t.Errorf("%s: installed %v, %v\n%s", what, installed, err, c.out.String())
				}
			}
			sums = sum + "  " + archiveName + "\n"
			kept := filepath.Join(c.env["HOME"], ".cache", "fleetbroker-ci")
			if installed, err := c.run(); err != nil || !installed {
				t.Errorf("without a checksum: installed %v, %v\n%s", installed, err, c.out.String())
			}
			if _, err := os.Stat(kept); err == nil {
				t.Error("without a checksum something is kept")
			}
			c.env["FLEETBROKER_SUM"] = "sha256:" + sum
			if installed, err := c.run(); err != nil || !installed {
				t.Fatalf("installed %v, %v\n%s", installed, err, c.out.String())
			}
			if name != "github" {
				if _, err := os.Stat(kept); err == nil || strings.Contains(c.read(t, c.file), "cache@") || strings.Contains(c.read(t, c.file), "cache:\n") {
					t.Error("something is kept where others may write it")
				}
				return
			}
			if list, err := os.ReadDir(kept); err != nil || len(list) != 1 || list[0].Name() != archiveName {
				t.Errorf("kept are %v, %v; want the archive alone", list, err)
			}
			asked = 0
			if installed, err := c.run(); err != nil || !installed || asked > 0 {
				t.Errorf("with a cache: %d requests, %v\n%s", asked, err, c.out.String())
			}
		})
	}
}

// What the branch brings, and what another pull request left in the cache, is not run.
func TestWorkflows_NoProgramOfTheBranch(t *testing.T) {
	t.Parallel()
	archive := tarOf(t, "fleetbroker", "#!/bin/sh\necho v0.1.0\n")
	bad := "#!/bin/sh\necho mine\n"
	for name := range ciFiles {
		for _, sum := range []string{"", fmt.Sprintf("sha256:%x", sha256.Sum256(archive))} {
			t.Run(name+" "+sum, func(t *testing.T) {
				sums, asked := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), archiveName), 0
				c := newInstaller(t, name)
				c.env["FLEETBROKER_RELEASES"], c.env["FLEETBROKER_SUM"] = releases(t, archive, &sums, &asked), sum
				for _, dir := range []string{filepath.Join(c.dir, ".fleetbroker-ci"), filepath.Join(c.env["HOME"], ".cache/fleetbroker-ci"), filepath.Join(c.env["RUNNER_TEMP"], "fleetbroker-ci")} {
					if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "fleetbroker"), []byte(bad), 0o755),
						os.WriteFile(filepath.Join(dir, archiveName), tarOf(t, "fleetbroker", bad), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				if installed, err := c.run(); err != nil || !installed {
					t.Errorf("%v\n%s", err, c.out.String())
				}
				if strings.Contains(c.read(t, c.file), "GITHUB_PATH") || strings.Contains(c.read(t, c.file), "export PATH") {
					t.Error("a directory is put on the PATH")
				}
			})
		}
	}
}

// Of what was unpacked from a cache nothing but the archive has a say: programs on the way to
// the system's are not taken, a link or a pipe in the archive's place is not read, and what
// lies in the checkout is gone with it.
func TestWorkflows_NothingOfTheCacheIsRun(t *testing.T) {
	t.Parallel()
	archive := tarOf(t, "fleetbroker", "#!/bin/sh\necho v0.1.0\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	sums, asked := sum+"  "+archiveName+"\n", 0
	mine := filepath.Join(t.TempDir(), "mine")
	c := newInstaller(t, "github")
	c.env["FLEETBROKER_RELEASES"], c.env["FLEETBROKER_SUM"] = releases(t, archive, &sums, &asked), "sha256:"+sum
	early := filepath.Join(c.env["HOME"], ".local", "bin")
	kept := filepath.Join(c.env["HOME"], ".cache", "fleetbroker-ci", archiveName)
	if err := errors.Join(os.MkdirAll(early, 0o755), os.MkdirAll(filepath.Dir(kept), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sha256sum", "cut", "cp", "tar", "curl", "grep", "head", "rm", "mkdir", "uname", "cat", "jq", "fleetbroker"} {
		text := "#!/bin/sh\necho " + name + " >> " + mine + "\nexec /usr/bin/" + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(early, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.env["PATH"] = early + ":" + os.Getenv("PATH")
	for what, put := range map[string]func() error{
		"a link":      func() error { return os.Symlink("/dev/zero", kept) },
		"a pipe":      func() error { return syscall.Mkfifo(kept, 0o600) },
		"a directory": func() error { return os.Mkdir(kept, 0o755) },
		"the archive": func() error { return os.WriteFile(kept, archive, 0o600) },
	} {
		if err := errors.Join(os.RemoveAll(kept), put()); err != nil {
			t.Fatal(err)
		}
		if installed, err := c.run(); err != nil || !installed {
			t.Errorf("%s: installed %v, %v\n%s", what, installed, err, c.out.String())
		}
	}
	if ran, err := os.ReadFile(mine); err == nil {
		t.Errorf("programs from the cache ran: %q", ran)
	}
	var w struct{ Jobs map[string]job }
	if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &w); err != nil {
		t.Fatal(err)
	}
	restored := false
	for _, s := range w.Jobs["plan"].Steps {
		switch {
		case strings.HasPrefix(s.Uses, "actions/cache@"):
			restored = true
		case strings.HasPrefix(s.Uses, "actions/checkout@") && !restored:
			t.Error("the cache is unpacked over the checkout")
		case s.Run != "" && !strings.Contains(strings.SplitN(s.Run, "\n", 2)[0], "PATH=/usr/bin:/bin"):
			t.Errorf("step %s takes programs from any PATH", s.Name)
		}
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
	for name, content := range map[string]string{"go.mod": mod, "cmd/fleetbroker/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(`v0.1.0`) }\n"} {
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
