//go:build e2e

package hostile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// The bounds of one input: processor time of user and system, and the peak of
// resident memory. wall ends what hangs.
const (
	maxCPU    = 5 * time.Second
	maxMemory = 1 << 30
	wall      = time.Minute
)

// ran is what a program did.
type ran struct {
	code   int
	out    string // standard output
	said   string // standard error
	cpu    time.Duration
	memory int64
}

// run runs one of the project's programs to its end, with its children, and
// holds it to the bounds.
func run(t *testing.T, program string, args ...string) ran {
	t.Helper()
	return runWithin(t, maxCPU, program, args...)
}

// runWithin is run with another bound of processor time, for many inputs at
// once.
func runWithin(t *testing.T, most time.Duration, program string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wall)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "NO_COLOR=1")
	forgetPeak(t)
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("%s: %v\n%.2000s", cmd, err, said.String())
	}
	r := ran{code: cmd.ProcessState.ExitCode(), out: out.String(), said: said.String(), cpu: bounded.Time(cmd.ProcessState)}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("this system does not say what a process used")
	}
	r.memory = usage.Maxrss << 10
	if r.cpu > most || r.memory > maxMemory {
		t.Errorf("%.200s took %s and %d MiB, want at most %s and %d MiB", strings.Join(args, " "), r.cpu, r.memory>>20, most, maxMemory>>20)
	}
	if r.code < 0 || strings.Contains(r.said, "panic:") || strings.Contains(r.said, "goroutine ") {
		t.Errorf("%.200s ended with %d:\n%.4000s", strings.Join(args, " "), r.code, r.said)
	}
	visible(t, "standard error of "+args[0], r.said)
	return r
}

// forgetPeak makes this process's most memory what it has now. The kernel counts what a
// process had as its child's until that runs another program, and this one makes hostile
// answers of hundreds of megabytes.
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Logf("the most memory of a program counts what the test has had: %v", err)
	}
}

// visible fails on what a terminal obeys.
func visible(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %.300q", what, text)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.ContainsAny(line, "\x1b\x07\x00\r\u202e\u200b\u2066") {
			t.Errorf("%s holds control characters: %.300q", what, line)
			return
		}
	}
}

// put lays files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
