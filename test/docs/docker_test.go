package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDockerfiles: BuildKit's parser and linter, and rules of ours, find
// nothing in the Dockerfiles and each mistake in one that is wrong. No engine is
// needed, so no image is made.
func TestDockerfiles(t *testing.T) {
	lint := filepath.Join(t.TempDir(), "dockerlint")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", lint, ".")
	build.Dir = filepath.Join(root, "test/tools/dockerlint")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the linter: %v\n%s", err, out)
	}
	for _, program := range []string{"fleetbroker", "fleet-agent"} {
		path := filepath.Join(root, "cmd", program, "Dockerfile")
		if out, err := exec.CommandContext(t.Context(), lint, path).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		built(t, path, program)
	}
	bad := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(bad, []byte("FROM a as b\nWORKDIR x\nCOPY --from=z a b\nADD http://x y\nENV API_TOKEN=x\nFROM a:1 AS b\nCMD foo bar\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), lint, bad).CombinedOutput()
	if err == nil {
		t.Error("a Dockerfile full of mistakes passed")
	}
	for _, rule := range []string{
		"FromAsCasing", "UntaggedBase", "WorkdirRelativePath", "UnknownStage", "AddInsteadOfCopy", "SecretsUsedInArgOrEnv",
		"DuplicateStageName", "JSONArgsRecommended", "RootUser", "NoEntrypoint",
	} {
		if !strings.Contains(string(out), rule) {
			t.Errorf("%s was not found in\n%s", rule, out)
		}
	}
}

// built looks at the line of a Dockerfile that builds the program: what it
// names is a package of ours. (Building it without cgo would compile every
// dependency once more.)
func built(t *testing.T, path, program string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "RUN" || words[1] != "CGO_ENABLED=0" {
			continue
		}
		list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Name}}", words[len(words)-1])
		list.Dir = root
		if out, err := list.CombinedOutput(); err != nil || string(out) != "main\n" || !strings.HasSuffix(words[len(words)-1], "/"+program) {
			t.Errorf("%s: %s %v", line, out, err)
		}
		return
	}
	t.Errorf("%s builds nothing", path)
}
