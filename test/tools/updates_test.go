package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Each module of tools is updated once, and those of a version's name stay of that version.
func TestUpdatesKeepOldServersOld(t *testing.T) {
	text, err := os.ReadFile("../../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	type ignored struct {
		Name  string   `json:"dependency-name"`
		Types []string `json:"update-types"`
	}
	var config struct {
		Updates []struct {
			Directories []string  `json:"directories"`
			Ignore      []ignored `json:"ignore"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, u := range config.Updates {
		patches := slices.ContainsFunc(u.Ignore, func(i ignored) bool {
			return i.Name == "*" && slices.Equal(i.Types, []string{"version-update:semver-minor", "version-update:semver-major"})
		})
		for _, dir := range u.Directories {
			found[dir]++
			if old := strings.HasPrefix(dir, "/test/tools/kubernetes-"); old != patches {
				t.Errorf("%s: only patches: %v, want %v", dir, patches, old)
			}
		}
	}
	modules, err := filepath.Glob("*/go.mod")
	if err != nil || len(modules) < 10 {
		t.Fatal(modules, err)
	}
	for _, m := range modules {
		if dir := "/test/tools/" + filepath.Dir(m); found[dir] != 1 {
			t.Errorf("%s is in dependabot.yml %d times", dir, found[dir])
		}
	}
	if len(found) != len(modules) {
		t.Errorf("dependabot.yml has %d directories, there are %d modules", len(found), len(modules))
	}
}

// The night has an end: what runs on the oldest servers runs before what takes as long as
// it is given.
func TestOldServersComeFirst(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(text), "\ntest-full:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	seeds := strings.Index(recipe, "-seeds ")
	for _, part := range []string{"./test/e2e/policies -run TestForms -full", "./test/e2e/install -run TestInstallCluster_Webhook -full"} {
		if at := strings.Index(recipe, part); at < 0 || seeds < 0 || at > seeds {
			t.Errorf("%q is at %d of test-full, the seeds are at %d", part, at, seeds)
		}
	}
}
