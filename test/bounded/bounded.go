package bounded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bounds of one run.
type Bounds struct {
	// CPU is processor time (Time). Zero: 5 s.
	CPU time.Duration
	// Memory is the peak of resident memory in bytes. Zero: 1 GiB.
	Memory int64
}

// mark tells a process that it is the child. Its value is the test's name.
const mark = "FLEETBROKER_BOUNDED_TEST"

// wall ends a child that hangs.
const wall = 2 * time.Minute

// Run runs work in a child process: this test binary, with this test alone. The
// test fails when the work fails in the child, or exceeds a bound.
func Run(t *testing.T, b Bounds, work func(t *testing.T)) {
	t.Helper()
	if os.Getenv(mark) == t.Name() {
		work(t)
		return
	}
	if b.CPU == 0 {
		b.CPU = 5 * time.Second
	}
	if b.Memory == 0 {
		b.Memory = 1 << 30
	}
	ctx, cancel := context.WithTimeout(t.Context(), wall)
	defer cancel()
	var parts []string
	for _, p := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(p)+"$")
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run="+strings.Join(parts, "/"), "-test.count=1")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("start the child: %v", err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("this system does not say what a process used")
	}
	cpu, memory := Time(cmd.ProcessState), usage.Maxrss<<10
	t.Logf("%s of processor time, %d MiB", cpu.Round(time.Millisecond), memory>>20)
	if err != nil {
		const shown = 4000
		t.Errorf("in the child: %v\n%s", err, out[max(0, len(out)-shown):])
	}
	if cpu > b.CPU {
		t.Errorf("took %s of processor time, want at most %s", cpu, b.CPU)
	}
	if memory > b.Memory {
		t.Errorf("took %d MiB, want at most %d MiB", memory>>20, b.Memory>>20)
	}
}

// Numbered joins a text once a number, from 0: the format has its place.
func Numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
