package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// The linter of GitHub's workflows finds nothing in the template's, and what is
// wrong in one that is.
func TestWorkflowsAreWellWritten(t *testing.T) {
	lint, err := tools.Find(t.Context(), "actionlint", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	run := func(path string) (string, error) {
		out, err := exec.CommandContext(t.Context(), lint, "-no-color", "-shellcheck=", "-pyflakes=", path).CombinedOutput()
		return string(out), err
	}
	for _, path := range []string{"../../fleet-repo-template/.github/workflows/fleet.yml", "../../fleet-repo-template/.gitea/workflows/fleet.yml"} {
		if out, err := run(path); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.yml")
	text := "on: pull_requests\njobs: {plan: {steps: [{run: 'echo ${{ github.event.pull_request.title }}'}, {run: 'echo ${{ steps.x.outputs }}'}]}}\n"
	if err := os.WriteFile(bad, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := run(bad)
	for _, want := range []string{"pull_requests", "runs-on", "untrusted", `property "x"`} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q is not found in %v\n%s", want, err, out)
		}
	}
}

// schemaOf compiles a published schema; its licence lies beside it.
func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/schemas", name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file:///"+name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("file:///" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid holds JSON against a schema.
func valid(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return s.Validate(doc)
}

func TestGitLabPipelineIsWellWritten(t *testing.T) {
	schema := schemaOf(t, "gitlab-ci.json")
	text, err := os.ReadFile("../../fleet-repo-template/.gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, with string
		wrong           bool
	}{
		{"as it is", "", "", false},
		{"what a job extends", "extends: .fleetbroker", "extends: 7", true},
		{"an artifact's when", "when: always", "when: sometimes", true},
		{"a report", "codequality: findings.json", "codequality: 7", true},
	} {
		doc, err := yaml.YAMLToJSON(bytes.Replace(text, []byte(c.old), []byte(c.with), 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(t, schema, doc); (err != nil) != c.wrong {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What is wrong in a fleet is valid SARIF, whatever its files are called.
func TestFindingsAreSARIF(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	run := func(args ...string) string {
		var out bytes.Buffer
		cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{}, Now: func() time.Time { return noon }}, args)
		return out.String()
	}
	run("init", dir)
	schema := schemaOf(t, "sarif-2.1.0.json")
	if out := run("validate", dir, "-o", "sarif"); valid(t, schema, []byte(out)) != nil {
		t.Errorf("nothing wrong: %v in\n%s", valid(t, schema, []byte(out)), out)
	}
	for _, name := range []string{"a b.yaml", "100%.yaml", "ü:x.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, "intents/vision", name), []byte("kind: \"<&>\\n::error::\"\nspec: [\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := run("validate", dir, "-o", "sarif")
	if err := valid(t, schema, []byte(out)); err != nil {
		t.Errorf("%v in\n%s", err, out)
	}
	for _, uri := range []string{"intents/vision/a%20b.yaml", "intents/vision/100%25.yaml", "intents/vision/%C3%BC:x.yaml"} {
		if !strings.Contains(out, `"uri": "`+uri+`"`) {
			t.Errorf("no %s in\n%s", uri, out)
		}
	}
	if valid(t, schema, []byte(strings.Replace(out, `"level": "error"`, `"level": "bad"`, 1))) == nil {
		t.Error("a level that does not exist is valid")
	}
	annotations := run("validate", dir, "-o", "github")
	if n := strings.Count(annotations, "\n"); n != strings.Count(annotations, "::error file=")+strings.Count(annotations, "::warning file=") {
		t.Errorf("a line is no annotation:\n%s", annotations)
	}
	if !strings.Contains(annotations, "file=intents/vision/100%25.yaml,") || !strings.Contains(annotations, "ü%3Ax.yaml,") {
		t.Errorf("names are not escaped:\n%s", annotations)
	}
}

// The hook of the template is the one that the project offers, and looks at
// what people write and at nothing else.
func TestPreCommitHooks(t *testing.T) {
	type hook struct {
		ID, Name, Entry, Language, Files, Description string
		PassFilenames                                 bool `json:"pass_filenames"`
	}
	load := func(path string, into any) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var offered []hook
	load("../../.pre-commit-hooks.yaml", &offered)
	var config struct {
		Repos []struct {
			Repo  string
			Hooks []hook
		}
	}
	load("../../fleet-repo-template/.pre-commit-config.yaml", &config)
	if len(offered) != 1 || len(config.Repos) != 1 || len(config.Repos[0].Hooks) != 1 {
		t.Fatalf("%+v, %+v", offered, config)
	}
	a, b := offered[0], config.Repos[0].Hooks[0]
	if a.ID != b.ID || a.Entry != b.Entry || a.Files != b.Files || a.Language != "golang" || b.Language != "system" {
		t.Errorf("%+v differs from %+v", a, b)
	}
	files := regexp.MustCompile(a.Files)
	for path, want := range map[string]bool{
		"fleet.yaml": true, "intents/vision/train.yaml": true, "pki/revoked.crl": true, "overlays/rome/kustomization.yaml": true,
		"README.md": false, "docs/fleet.yaml": false, "contracts/vision/x.yaml": false,
	} {
		if files.MatchString(path) != want {
			t.Errorf("%s: looked at %t", path, !want)
		}
	}
	dir := filepath.Join(t.TempDir(), "fleet")
	if out, err := exec.CommandContext(t.Context(), "fleetbroker", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	words := strings.Fields(a.Entry)
	for _, broken := range []bool{false, true} {
		if broken {
			if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte("kind: Flet\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err != nil) != broken {
			t.Errorf("broken %t: %v\n%s", broken, err, out)
		}
	}
}
