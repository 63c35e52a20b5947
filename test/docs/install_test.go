package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the texts of all pages of the template.
func pages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../fleet-repo-template/docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	var out strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	return out.String()
}

// Each Secret that an install base names, and that people have to make, is made by a command
// of some page, or of a component's own file: else a pod waits in ContainerCreating for it, or Flux fails to read.
func TestEverySecretOfTheInstallBasesIsMade(t *testing.T) {
	text := pages(t)
	named := regexp.MustCompile(`(?:secretName: |secretRef: \{name: )([a-z0-9-]+)`)
	seen := map[string]bool{}
	err := filepath.WalkDir("../../fleet-repo-template/install", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		base, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(base), -1) {
			seen[m[1]] = true
			if !strings.Contains(text+string(base), "secret generic "+m[1]) {
				t.Errorf("%s needs Secret %s, and nothing says how to make it", path, m[1])
			}
		}
		return nil
	})
	if err != nil || len(seen) < 8 {
		t.Fatal(seen, err)
	}
}

// What a step needs is made before it.
func TestInstall_InItsOrder(t *testing.T) {
	b, err := os.ReadFile("../../fleet-repo-template/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, order := range [][]string{
		{"\nmake build", "\nfleetbroker validate\n"},
		{"\nmake images ", "--image ghcr.io/acme/fleet-agent:v0.1.0\n", "\nkubectl --context paris apply -k install/clusters/paris\n"},
		{"secret generic fleet-agent-certs", "\nkubectl --context paris apply -k install/clusters/paris\n"},
		{"\nsed -i.orig 's#--repo=", "\nkubectl apply -k install/broker\n"},
	} {
		at := -1
		for _, part := range order {
			next := strings.Index(text, part)
			if next <= at {
				t.Errorf("%q is at %d, want it after %d, in the order %q", part, next, at, order)
			}
			at = next
		}
	}
}
