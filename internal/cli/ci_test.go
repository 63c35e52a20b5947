package cli_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// job is as much of a workflow of GitHub or Gitea as this test runs.
type job struct {
	Env   map[string]string
	Steps []struct {
		Name, ID, Uses, Run, If string
		Env                     map[string]string
	}
}

// The workflows' own shell commands are run, against a checkout with a base, a
// ledger branch and a change, and against a forge that keeps comments. What the
// runner does itself (checking out, installing Go) is done by the test.
func TestWorkflowsRun(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]struct {
		path, api, token string
		run              func(c *ci, t *testing.T) map[string]error
	}{
		"github": {".github/workflows/fleet.yml", "/repos/acme/fleet/issues", "Bearer s3cret", (*ci).workflow},
		"gitea":  {".gitea/workflows/fleet.yml", "/api/v1/repos/acme/fleet/issues", "token s3cret", (*ci).workflow},
		"gitlab": {".gitlab-ci.yml", "/projects/1/merge_requests/7/notes", "s3cret", (*ci).gitlab},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCI(t, name, forge.path)
			run := func(intent string, want map[string]bool) string {
				t.Helper()
				c.change(t, intent)
				for step, err := range forge.run(c, t) {
					if (err == nil) != want[step] {
						t.Errorf("step %s: %v\n%s", step, err, c.out.String())
					}
				}
				return c.forge.only(t, forge.api, forge.token)
			}
			good := run(goodIntent, map[string]bool{"validate": true, "plan": true, "comment": true})
			if !strings.Contains(good, "vision/train") || !strings.Contains(good, "1 place") {
				t.Errorf("the comment says %s", good)
			}
			bad := run(strings.Replace(goodIntent, "gpu:", "gpus:", 1), map[string]bool{"plan": true, "comment": true})
			if !strings.Contains(bad, "intents/vision/train.yaml:") || strings.Contains(bad, "1 place") {
				t.Errorf("the comment of a bad intent says %s", bad)
			}
			if name == "gitlab" {
				if findings := c.read(t, "findings.json"); !strings.Contains(findings, `"path": "intents/vision/train.yaml"`) {
					t.Errorf("findings.json is %s", findings)
				}
			} else if !strings.Contains(c.out.String(), "::error file=intents/vision/train.yaml,line=8,col=") {
				t.Errorf("no annotation in\n%s", c.out.String())
			}
		})
	}
}

// A pull request from a fork is checked, and nothing is said of it.
func TestWorkflowsDoNotCommentForForks(t *testing.T) {
	c := newCI(t, "github", ".github/workflows/fleet.yml")
	c.fork = true
	c.change(t, goodIntent)
	for step, err := range c.workflow(t) {
		if err != nil || step == "comment" {
			t.Errorf("step %s: %v", step, err)
		}
	}
}

const goodIntent = `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: train, namespace: vision}
spec:
  resources:
    cpu: "4"
    memory: 40Gi
    gpu: "L4:2"
`

// ci is a checkout on a runner.
type ci struct {
	dir, file, kind string
	forge           *forgeAPI
	server          *httptest.Server
	fork            bool
	out             strings.Builder
}

func newCI(t *testing.T, kind, file string) *ci {
	t.Helper()
	c := &ci{kind: kind, file: file, forge: &forgeAPI{}}
	c.server = httptest.NewServer(c.forge)
	t.Cleanup(c.server.Close)
	origin := filepath.Join(t.TempDir(), "origin")
	c.dir = filepath.Join(t.TempDir(), "checkout")
	for _, args := range [][]string{
		{"fleetbroker", "init", origin, "--forge", kind},
		{"git", "-C", origin, "init", "-q", "-b", "main"},
		{"git", "-C", origin, "add", "."},
		{"git", "-C", origin, "commit", "-q", "-m", "A fleet"},
		{"git", "-C", origin, "branch", "ledger"},
		{"git", "clone", "-q", origin, c.dir},
		{"git", "-C", c.dir, "checkout", "-q", "--detach"},
	} {
		if out, err := c.command(nil, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return c
}

// change commits an intent, as a pull request would.
func (c *ci) change(t *testing.T, intent string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "intents/vision/train.yaml"), []byte(intent), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"git", "-C", c.dir, "add", "intents"}, {"git", "-C", c.dir, "commit", "-q", "-m", "Ask"}} {
		if out, err := c.command(nil, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	c.out.Reset()
}

func (c *ci) command(env map[string]string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// shell runs a script as the runners do: bash that stops at the first error.
func (c *ci) shell(script string, env map[string]string) error {
	cmd := c.command(env, "bash", "-e", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &c.out, &c.out
	return cmd.Run()
}

func (c *ci) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// expand puts in what the forge would for an expression.
func (c *ci) expand(t *testing.T, s string) string {
	known := map[string]string{
		"github.base_ref": "main", "github.repository": "acme/fleet", "github.event.pull_request.number": "7",
		"github.api_url": c.server.URL, "github.server_url": c.server.URL, "github.token": "s3cret", "secrets.GITHUB_TOKEN": "s3cret",
		"vars.FLEETBROKER_MARKET": "", "secrets.FLEETBROKER_TLS_CRT": "", "secrets.FLEETBROKER_TLS_KEY": "", "secrets.FLEETBROKER_CA_CRT": "",
	}
	return expression.ReplaceAllStringFunc(s, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		v, ok := known[name]
		if !ok {
			t.Errorf("%s uses %s, which this test does not know", c.file, name)
		}
		return v
	})
}

// workflow runs the steps of the file's only job; a step that its condition
// leaves out has no entry.
func (c *ci) workflow(t *testing.T) map[string]error {
	var w struct{ Jobs map[string]job }
	if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &w); err != nil {
		t.Fatal(err)
	}
	only, temp := w.Jobs["plan"], t.TempDir()
	bin := filepath.Join(temp, "fleetbroker-ci") // as the step leaves it that installs it
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(program(t), filepath.Join(bin, "fleetbroker"))); err != nil {
		t.Fatal(err)
	}
	done, ids, failed := map[string]error{}, map[string]error{}, false
	for _, step := range only.Steps {
		if step.Run == "" || step.Name == "install" {
			continue
		}
		if expression.MatchString(step.Run) {
			t.Errorf("step %s of %s has an expression in its script: a branch's name could be a command", step.Name, c.file)
		}
		if !c.due(t, step.If, failed, ids) {
			continue
		}
		env := map[string]string{"RUNNER_TEMP": temp, "GITHUB_STEP_SUMMARY": filepath.Join(t.TempDir(), "summary")}
		for _, set := range []map[string]string{only.Env, step.Env} {
			for k, v := range set {
				env[k] = c.expand(t, v)
			}
		}
		err := c.shell(step.Run, env)
		failed = failed || err != nil
		done[step.Name], ids[step.ID] = err, err
	}
	return done
}

// program is the one under test.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("fleetbroker")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// due reads a step's condition.
func (c *ci) due(t *testing.T, condition string, failed bool, ids map[string]error) bool {
	if condition == "" {
		return !failed
	}
	all := expression.FindStringSubmatch(condition)
	if all == nil {
		t.Fatalf("condition %q is no expression", condition)
	}
	for _, part := range strings.Split(all[1], " && ") {
		switch part {
		case "!cancelled()":
		case "steps.plan.outcome == 'success'":
			if ids["plan"] != nil {
				return false
			}
		case "!github.event.pull_request.head.repo.fork":
			if c.fork {
				return false
			}
		default:
			t.Errorf("condition %q is not known to this test", part)
		}
	}
	return true
}

// gitlab runs the jobs of .gitlab-ci.yml.
func (c *ci) gitlab(t *testing.T) map[string]error {
	type jobs struct {
		Extends string
		Before  []string `json:"before_script"`
		Script  []string
	}
	var file struct {
		Shared   jobs `json:".fleetbroker"`
		Validate jobs
		Plan     jobs
		Comment  jobs
	}
	if err := yaml.Unmarshal([]byte(c.read(t, c.file)), &file); err != nil {
		t.Fatal(err)
	}
	archive, asked := tarOf(t, "fleetbroker", "#!/bin/sh\nexec "+program(t)+" \"$@\"\n"), 0
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), archiveName)
	env := map[string]string{
		"FLEETBROKER_VERSION": "v0.1.0", "FLEETBROKER_RELEASES": releases(t, archive, &sums, &asked), "FLEETBROKER_SUM": "",
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_API_V4_URL": c.server.URL, "CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "7",
	}
	done := map[string]error{}
	for name, j := range map[string]jobs{"validate": file.Validate, "plan": file.Plan} {
		if j.Extends != ".fleetbroker" {
			t.Errorf("job %s extends %q", name, j.Extends)
		}
		done[name] = c.shell(strings.Join(append(append([]string{}, file.Shared.Before...), j.Script...), "\n"), env)
	}
	env["FLEETBROKER_COMMENT_TOKEN"] = "s3cret" // the comment job's alone
	done["comment"] = c.shell(strings.Join(file.Comment.Script, "\n"), env)
	return done
}

// forgeAPI is the comments of one pull request.
type forgeAPI struct {
	mu       sync.Mutex
	comments []map[string]any
	tokens   []string
	paths    []string
}

func (f *forgeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = append(f.tokens, r.Header.Get("Authorization")+r.Header.Get("Private-Token"))
	f.paths = append(f.paths, r.Method+" "+r.URL.Path)
	var body map[string]any
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch r.Method {
	case http.MethodGet:
		_ = json.NewEncoder(w).Encode(append([]map[string]any{}, f.comments...))
	case http.MethodPost:
		body["id"] = 40 + len(f.comments)
		f.comments = append(f.comments, body)
		w.WriteHeader(http.StatusCreated)
	default:
		i, err := strconv.Atoi(filepath.Base(r.URL.Path))
		if err != nil || i < 40 || i-40 >= len(f.comments) {
			http.NotFound(w, r)
			return
		}
		f.comments[i-40]["body"] = body["body"]
	}
}

// only is the text of the only comment, which was asked for and written below a
// path and with a token.
func (f *forgeAPI) only(t *testing.T, below, token string) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.paths {
		if !strings.Contains(p, " "+below) || f.tokens[i] != token {
			t.Errorf("%s with %q", p, f.tokens[i])
		}
	}
	if len(f.comments) != 1 {
		t.Fatalf("there are %d comments after %v", len(f.comments), f.paths)
	}
	return fmt.Sprint(f.comments[0]["body"])
}
