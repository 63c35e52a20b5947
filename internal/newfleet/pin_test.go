package newfleet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/install"
	"github.com/fleetbroker/fleetbroker/internal/laid"
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

// The bases have the images of the registry that is named with the releases, or that the
// workflow of github.com pushes to, of the version that CI installs; else they have the sample
// that people fill in. CI gets the URL alone.
func TestPin_IsInTheBases(t *testing.T) {
	const (
		github       = "https://github.com/Acme/fleetbroker/releases/download"
		withRegistry = "https://dl.acme.example/fleetbroker#registry.acme.example:5000/tools"
	)
	for name, c := range map[string]struct {
		pin             Pin
		registry, label string
	}{
		"a release":      {Pin{Version: "v1.2.3", Releases: github}, "ghcr.io/acme/", "v1.2.3"},
		"a commit":       {Pin{Version: "1234567890123456789012345678901234567890", Releases: github}, "ghcr.io/acme/", "v0.1.0"},
		"another server": {Pin{Version: "v1.2.3", Releases: "https://example.org/dl"}, "registry.example.org/", "v0.1.0"},
		"with registry":  {Pin{Version: "v1.2.3", Releases: withRegistry}, "registry.acme.example:5000/tools/", "v1.2.3"},
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
		if want := c.registry != "registry.example.org/"; want != (image != "") {
			t.Errorf("%s: `install CLUSTER` takes the image %q", name, image)
		}
		if strings.Contains(string(files[ciFiles["github"]]), "registry.acme.example") {
			t.Errorf("%s: %s names the registry", name, ciFiles["github"])
		}
	}
}

// The URL of releases is written into files that CI runs: nothing gets in that a shell or
// YAML would read otherwise.
func TestCheckReleases(t *testing.T) {
	for _, good := range []string{"https://github.com/acme/fleetbroker/releases/download", "https://dl.example.org:8443/~fleet/x", "https://dl.example.org/x/#registry.example.org:5000/a/b-c/", "https://dl.example.org/x#registry:5000", "https://dl.example.org/x#registry.example.org"} {
		if err := CheckReleases(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "http://example.org/dl", "https://", "https://user:pw@example.org/", "https://example.org/?x=1", "https://example.org/#", "https://example.org/#x", "https://example.org/#x/y", "https://example.org/#r.example.org/A", "https://example.org/#r.example.org/a:b", "https://example.org/#r.example.org#x", "https://example.org/#r.example.org/$(id)", "https://example.org/#r.example.org\nx: y", "https://example.org/#r.example.org/../x", `https://example.org/"`, "https://example.org/$(id)", "https://example.org/\nx: y", "https://example.org/ x", "file:///etc", "-o"} {
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
	const registry = "https://example.org/other#registry.acme.example/tools"
	for _, releases := range []string{registry, ""} {
		if _, err := Update(dir, releases); err != nil {
			t.Fatal(err)
		}
		check("https://example.org/other")
		if text := contentOf(t, dir, "install/agent/kustomization.yaml"); !strings.Contains(text, "newName: registry.acme.example/tools/fleet-agent\n") {
			t.Errorf("after an update from %q the base has other images:\n%s", releases, text)
		}
	}
	lock := contentOf(t, dir, Lock)
	write(t, dir, Lock, strings.Replace(lock, "https://example.org/other", "http://evil.example/$(id)", 1))
	if _, err := Update(dir, ""); err == nil || !strings.Contains(err.Error(), "want an https URL") {
		t.Errorf("a lock with a bad URL: %v", err)
	}
}

// A new version raises the tag of images that nobody edited. Where people named images of their
// own, in the same lines, theirs stay, whole and applicable, and the new lines are next to them.
func TestUpdate_ImagesOfOnesOwn(t *testing.T) {
	const (
		base = "install/broker/kustomization.yaml"
		at   = "https://dl.acme.example/x#registry.acme.example"
	)
	for name, c := range map[string]struct{ from, to string }{
		"nothing was edited":      {},
		"a registry of one's own": {"newName: registry.acme.example/fleetbroker", "newName: mirror.acme.example/fleetbroker"},
		"a tag of one's own":      {"newTag: v0.0.1", "newTag: v0.0.1-patched"},
		"a digest":                {"newTag: v0.0.1", "digest: sha256:" + strings.Repeat("a", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made := func(number string) {
				files, err := named("github", "", Pin{Version: number, Releases: at})
				if err != nil {
					t.Fatal(err)
				}
				maps.DeleteFunc(files, func(name string, _ []byte) bool { return isSample(name) })
				out, err := laid.Merge(dir, Lock, Base, files, number, choices("github", "", Pin{Releases: at}))
				if want := c.to != "" && number == "v0.0.2"; err != nil || want != slices.Contains(out.Conflicts, base) {
					t.Fatalf("%s: got %+v, %v", number, out, err)
				}
			}
			made("v0.0.1")
			edited := strings.Replace(contentOf(t, dir, base), c.from, c.to, 1)
			if c.to != "" && !strings.Contains(edited, c.to) {
				t.Fatalf("%s has no %q", base, c.from)
			}
			write(t, dir, base, edited)
			made("v0.0.2")
			if c.to == "" {
				if got := contentOf(t, dir, base); !strings.Contains(got, "newTag: v0.0.2\n") {
					t.Errorf("the tag is not raised:\n%s", got)
				}
				return
			}
			if got := contentOf(t, dir, base); got != edited {
				t.Errorf("what was edited changed:\n%s", got)
			}
			if got := contentOf(t, dir, base+".new"); !strings.Contains(got, "newName: registry.acme.example/fleetbroker") || !strings.Contains(got, "newTag: v0.0.2\n") {
				t.Errorf("next to it is no new version:\n%s", got)
			}
		})
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
