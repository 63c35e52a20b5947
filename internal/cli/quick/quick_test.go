package quick_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

// run runs the program.
func run(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Now: time.Now}, args)
	return o.String(), e.String(), code
}

// told are the lines of the timeline, without their times and without what differs from
// run to run.
func told(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if len(line) > 9 && line[6] == 's' && line[:6] != "      " {
			lines = append(lines, strings.TrimSpace(line[9:]))
		}
	}
	return lines
}

// The demo tells all of its story, in order, from the program alone; the clone that it
// keeps is a fleet repo whose ledger has all decisions.
func TestQuickDemo(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // neither git nor kubectl
	dir := t.TempDir()
	out, errs, code := run(t, "demo", "--quick", "--dir", dir)
	if code != 0 {
		t.Fatalf("it ends with %d: %s\n%s", code, errs, out)
	}
	lines, at := told(out), 0
	for _, want := range []string{
		"simulated: ", "up: paris and milan give", "the daemon is ready", "ada of team vision commits", "the pull request is merged",
		"reserved: the remote has the contract's commit", "applied: the slice exists on rome", "active: the provider granted",
		"ada deploys her job", "ada removes the intent", "released, ", "the pods were evicted", "done: nothing is left running",
	} {
		i := slices.IndexFunc(lines[at:], func(line string) bool { return strings.HasPrefix(line, want) })
		if i < 0 {
			t.Fatalf("after %q it does not tell %q:\n%s", lines[max(at-1, 0)], want, out)
		}
		at += i + 1
	}
	for _, want := range []string{"+ place    vision/llm-finetune", "2 of 3 fit", "Running   vision-llm-finetune-0-", "Running   paris-1", "No resources found"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q:\n%s", want, out)
		}
	}
	fleet := filepath.Join(dir, "fleet")
	if _, errs, code := run(t, "validate", fleet); code != 0 {
		t.Errorf("the clone that it keeps is no good fleet repo: %s", errs)
	}
	repo, err := git.PlainOpen(fleet)
	if err != nil {
		t.Fatal(err)
	}
	w, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if status, err := w.Status(); err != nil || !status.IsClean() {
		t.Errorf("the clone has changes: %v, %v", status, err)
	}
	ended, errs, code := run(t, "get", "contracts", "--ended", "-C", fleet, "-o", "json")
	if code != 0 || !strings.Contains(ended, `"Released"`) {
		t.Errorf("its ledger has no released contract: %s%s", ended, errs)
	}
}

func TestQuickDemo_LeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if out, errs, code := run(t, "demo", "--quick"); code != 0 {
		t.Fatalf("it ends with %d: %s\n%s", code, errs, out)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// Without --quick, and on a directory that is in use, it says what to do.
func TestQuickDemo_Refused(t *testing.T) {
	if _, errs, code := run(t, "demo"); code != 1 || !strings.Contains(errs, "make demo") || !strings.Contains(errs, "fleetbroker demo --quick") {
		t.Errorf("without --quick it ends with %d: %s", code, errs)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "fleet", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet", "mine"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := run(t, "demo", "--quick", "--dir", dir)
	if code != 1 || !strings.Contains(errs, "name another with --dir") {
		t.Errorf("on a directory in use it ends with %d: %s", code, errs)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "fleet", "mine")); err != nil || string(b) != "x" {
		t.Errorf("it touched what was there: %q, %v", b, err)
	}
}
