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
	for _, c := range []struct {
		args  []string
		tells []string
	}{
		{nil, []string{"reserved: the remote has the contract's commit", "active: the provider granted the slice", "Running   paris-", "released, "}},
		{[]string{"--no-liqo"}, []string{"reserved: the remote has the contract's commit", "the demo goes no further", "released, "}},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, demo, append([]string{"--bin", bin, "--dir", dir}, c.args...)...)
		// It makes a network of its own, as outside of this suite.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, env.Isolated+"=") })
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("demo %v: %v\n%s", c.args, err, out)
		}
		for _, want := range append(c.tells, "done: nothing is left running") {
			if !strings.Contains(string(out), want) {
				t.Errorf("demo %v does not tell %q:\n%s", c.args, want, out)
			}
		}
		programs, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil || len(programs) == 0 {
			t.Fatalf("no programs are seen, %v", err)
		}
		for _, file := range programs {
			if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(dir)) {
				t.Errorf("this is left running: %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
			}
		}
	}
}
