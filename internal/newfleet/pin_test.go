package newfleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/install"
)

// ciFiles are the CI files by forge.
var ciFiles = map[string]string{"github": ".github/workflows/fleet.yml", "gitea": ".gitea/workflows/fleet.yml", "gitlab": ".gitlab-ci.yml"}

func TestPin_IsInTheCIFiles(t *testing.T) {
	for forge, file := range ciFiles {
		for name, c := range map[string]struct {
			pin  Pin
			want []string
		}{
			"nothing is known": {Pin{}, []string{`FLEETBROKER_VERSION: "v0.1.0"`, `FLEETBROKER_RELEASES: ""`, `FLEETBROKER_SUM: ""`}},
			"a release":        {Pin{Version: "v1.2.3", Releases: "https://example.org/dl"}, []string{`FLEETBROKER_VERSION: "v1.2.3"`, `FLEETBROKER_RELEASES: "https://example.org/dl"`, `FLEETBROKER_SUM: ""`}},
			"a module":         {Pin{Version: "v1.2.3", Sum: "h1:abc="}, []string{`FLEETBROKER_VERSION: "v1.2.3"`, `FLEETBROKER_RELEASES: ""`, `FLEETBROKER_SUM: "h1:abc="`}},
			"a commit":         {Pin{Version: "1234567890123456789012345678901234567890"}, []string{`FLEETBROKER_VERSION: "1234567890123456789012345678901234567890"`}},
		} {
			files, err := named(forge, "", c.pin)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if strings.Count(string(files[file]), want+"\n") != 1 {
					t.Errorf("%s, %s: %s has no line %s", forge, name, file, want)
				}
			}
		}
	}
}

// Where releases are on github.com the bases have the images that its workflow pushes, of the
// version that CI installs; else they have the sample that people fill in.
func TestPin_IsInTheBases(t *testing.T) {
	const github = "https://github.com/Acme/fleetbroker/releases/download"
	for name, c := range map[string]struct {
		pin             Pin
		registry, label string
	}{
		"a release":      {Pin{Version: "v1.2.3", Releases: github}, "ghcr.io/acme/", "v1.2.3"},
		"a commit":       {Pin{Version: "1234567890123456789012345678901234567890", Releases: github}, "ghcr.io/acme/", "v0.1.0"},
		"another server": {Pin{Version: "v1.2.3", Releases: "https://example.org/dl"}, "registry.example.org/", "v0.1.0"},
		"nothing":        {Pin{}, "registry.example.org/", "v0.1.0"},
	} {
		files, err := named("github", "", c.pin)
		if err != nil {
			t.Fatal(err)
		}
		for file, image := range map[string]string{"install/broker/kustomization.yaml": "fleetbroker", "install/agent/kustomization.yaml": "fleet-agent"} {
			var k struct{ Images []map[string]string }
			if err := yaml.Unmarshal(files[file], &k); err != nil || len(k.Images) != 1 {
				t.Fatalf("%s: %v, %v", file, err, k)
			}
			if i := k.Images[0]; i["newName"] != c.registry+image || i["newTag"] != c.label || i["name"] != image {
				t.Errorf("%s, %s: got %v, want %s%s:%s", name, file, i, c.registry, image, c.label)
			}
		}
		_, image := install.Sample(func(name string) ([]byte, error) { return files[name], nil })
		if want := strings.HasPrefix(c.registry, "ghcr"); want != (image != "") {
			t.Errorf("%s: `install CLUSTER` takes the image %q", name, image)
		}
	}
}

// The URL of releases is written into files that CI runs: nothing gets in that a shell or
// YAML would read otherwise.
func TestCheckReleases(t *testing.T) {
	for _, good := range []string{"https://github.com/acme/fleetbroker/releases/download", "https://dl.example.org:8443/~fleet/x"} {
		if err := CheckReleases(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "http://example.org/dl", "https://", "https://user:pw@example.org/", "https://example.org/?x=1", "https://example.org/#x", `https://example.org/"`, "https://example.org/$(id)", "https://example.org/\nx: y", "https://example.org/ x", "file:///etc", "-o"} {
		if err := CheckReleases(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// --releases is kept by the lock, and an update without it goes on with it; a lock that names
// a bad one is refused.
func TestUpdate_KeepsReleases(t *testing.T) {
	dir := t.TempDir() + "/fleet"
	const at = "https://example.org/dl"
	pin, err := PinOf(at + "/")
	if err != nil || pin.Releases != at {
		t.Fatalf("%+v, %v", pin, err)
	}
	if _, err := Make(dir, "github", "f3k9q2abu7", pin); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		if text := contentOf(t, dir, ciFiles["github"]); !strings.Contains(text, `FLEETBROKER_RELEASES: "`+want+`"`) {
			t.Errorf("%s does not name %s", ciFiles["github"], want)
		}
	}
	check(at)
	if _, err := Update(dir, ""); err != nil {
		t.Fatal(err)
	}
	check(at)
	if _, err := Update(dir, "https://example.org/other"); err != nil {
		t.Fatal(err)
	}
	check("https://example.org/other")
	lock := contentOf(t, dir, Lock)
	write(t, dir, Lock, strings.Replace(lock, "https://example.org/other", "http://evil.example/$(id)", 1))
	if _, err := Update(dir, ""); err == nil || !strings.Contains(err.Error(), "want an https URL") {
		t.Errorf("a lock with a bad URL: %v", err)
	}
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
