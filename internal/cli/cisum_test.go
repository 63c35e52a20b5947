package cli_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The step that installs the program takes the version that is written there,
// and none whose checksum is another.
func TestWorkflows_InstallByVersionAndChecksum(t *testing.T) {
	proxy := moduleProxy(t)
	for name, file := range map[string]string{"github": ".github/workflows/fleet.yml", "gitea": ".gitea/workflows/fleet.yml", "gitlab": ".gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			c := newCI(t, name, file)
			var script string
			if name == "gitlab" {
				var w struct {
					Shared struct {
						Before []string `json:"before_script"`
					} `json:".fleetbroker"`
				}
				if err := yaml.Unmarshal([]byte(c.read(t, file)), &w); err != nil {
					t.Fatal(err)
				}
				script = strings.Replace(w.Shared.Before[0], "command -v fleetbroker", "false", 1)
			} else {
				var w struct{ Jobs map[string]job }
				if err := yaml.Unmarshal([]byte(c.read(t, file)), &w); err != nil {
					t.Fatal(err)
				}
				for _, s := range w.Jobs["plan"].Steps {
					if s.Name == "install" {
						script = s.Run
					}
				}
			}
			bin := t.TempDir()
			env := map[string]string{
				"FLEETBROKER_VERSION": "v0.1.0", "GOPROXY": "file://" + proxy, "GONOSUMDB": "*", "GOSUMDB": "off", "GOBIN": bin,
				"GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir(), "RUNNER_TEMP": t.TempDir(), "FLEETBROKER_SUM": "h1:another=",
			}
			if err := c.shell(script, env); err == nil || !strings.Contains(c.out.String(), "want h1:another=") {
				t.Errorf("another checksum: %v\n%s", err, c.out.String())
			}
			if _, err := os.Stat(filepath.Join(bin, "fleetbroker")); err == nil {
				t.Error("it was installed all the same")
			}
			_, sum, _ := strings.Cut(c.out.String(), "has the checksum ")
			env["FLEETBROKER_SUM"], _, _ = strings.Cut(sum, ",")
			if err := c.shell(script, env); err != nil || !strings.HasPrefix(env["FLEETBROKER_SUM"], "h1:") {
				t.Errorf("checksum %s: %v\n%s", env["FLEETBROKER_SUM"], err, c.out.String())
			}
			if _, err := os.Stat(filepath.Join(bin, "fleetbroker")); err != nil {
				t.Error(err)
			}
		})
	}
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
