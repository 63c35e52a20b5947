package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// hostile are tags that git takes and a shell or make would run.
var hostile = []string{`v1.2.3";touch${IFS}pwned;"`, "v1.2.3`touch${IFS}pwned`", "v$(touch${IFS}pwned)", "v1.2.3-$(shell${IFS}touch${IFS}pwned)", "v1.2.3-a/b", "v1.2", "vv1.2.3", ""}

// The workflow's first step lets versions pass, and no other tag; it has no secret, and
// nothing takes the tag as a part of a script.
func TestWorkflowTakesVersions(t *testing.T) {
	text, err := os.ReadFile("../../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	steps := w.Jobs["make"].Steps
	if len(steps[0].Env) > 0 {
		t.Errorf("the first step has %v", steps[0].Env)
	}
	for _, step := range steps {
		if strings.Contains(step.Run, "${{") || strings.Contains(step.Run, "VERSION=") {
			t.Errorf("the tag's text is in a script or make's command line:\n%s", step.Run)
		}
	}
	run := func(tag string) error {
		cmd := exec.Command("bash", "-e", "-c", steps[0].Run)
		cmd.Env, cmd.Dir = append(os.Environ(), "VERSION="+tag), t.TempDir()
		return cmd.Run()
	}
	for _, tag := range []string{"v0.1.0", "v1.20.3", "v1.2.3-rc.1", "v1.2.3-a-b"} {
		if err := run(tag); err != nil || !versions.MatchString(tag) {
			t.Errorf("%s: %v", tag, err)
		}
	}
	for _, tag := range hostile {
		if err := run(tag); err == nil || versions.MatchString(tag) {
			t.Errorf("%q passes", tag)
		}
	}
}

// What a tag holds is text for the recipes that have it from the environment.
func TestMakefileRunsNoTag(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"release", "images"} {
		for _, tag := range hostile[:4] {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "test/tools/images"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("make", "-f", filepath.Join(root, "Makefile"), target, "GO=echo")
			cmd.Env, cmd.Dir = append(os.Environ(), "VERSION="+tag, "RELEASES="+tag, "REGISTRY="+tag), dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "-version "+tag+" ") {
				t.Errorf("make %s with %q: %v\n%s", target, tag, err, out)
			}
			for _, at := range []string{"pwned", "test/tools/images/pwned"} {
				if _, err := os.Stat(filepath.Join(dir, at)); err == nil {
					t.Errorf("make %s runs %q", target, tag)
				}
			}
		}
	}
}
