//go:build e2e

package liqo

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// demoBudget is the processor time that `make demo` may take with servers that are built;
// processor time, because others may be busy on the same machine.
const demoBudget = 3 * time.Minute

// TestQuickDemo_Starts: the released program alone tells the whole story in memory within
// three seconds of processor time, which is more than its start.
func TestQuickDemo_Starts(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "fleetbroker"), "demo", "--quick")
	cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()} // no PATH: neither git nor kubectl
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done: nothing is left running") {
		t.Fatalf("%v:\n%s", err, out)
	}
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("demo --quick: %s of processor time", took)
	if took > 3*time.Second || took == 0 {
		t.Errorf("demo --quick took %s of processor time, want at most 3 s", took)
	}
}

// The demo tells its whole story, with Liqo and without, and leaves nothing
// running.
func TestDemo(t *testing.T) {
	t.Parallel()
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	demo := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", demo, "../../demo").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Rel(here, bin) // as make demo names them
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		tells []string
	}{
		{nil, []string{"reserved: the remote has the contract's commit", "active: the provider granted the slice", "Running   paris-", "released, "}},
		{[]string{"--no-liqo"}, []string{"reserved: the remote has the contract's commit", "the demo goes no further", "released, "}},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, demo, append([]string{"--bin", programs, "--dir", dir}, c.args...)...)
		// It makes a network of its own, as outside of this suite.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, env.Isolated+"=") })
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("demo %v: %v\n%s", c.args, err, out)
		}
		// With the servers built; those that it started and waited for are in it.
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("demo %v: %s of processor time", c.args, took.Round(time.Second))
		if took > demoBudget || took < time.Second {
			t.Errorf("demo %v took %s of processor time, want at most %s", c.args, took, demoBudget)
		}
		for _, want := range append(c.tells, "done: nothing is left running") {
			if !strings.Contains(string(out), want) {
				t.Errorf("demo %v does not tell %q:\n%s", c.args, want, out)
			}
		}
		running, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil || len(running) == 0 {
			t.Fatalf("no programs are seen, %v", err)
		}
		for _, file := range running {
			if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(dir)) {
				t.Errorf("this is left running: %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
			}
		}
	}
}
