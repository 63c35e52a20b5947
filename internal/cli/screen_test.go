package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// On a real terminal there are headers and colours; NO_COLOR and --color never
// take the colours, a pipe takes both.
func TestTerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if out, err := exec.CommandContext(t.Context(), "fleetbroker", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	screen := func(env string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "fleetbroker", append(args, "-C", dir)...)
		cmd.Env = append(os.Environ(), "TERMINAL=pty", "TERM=xterm-256color", env)
		f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, err := io.ReadAll(f)
		if err != nil && !errors.Is(err, syscall.EIO) { // the other end was closed
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		env  string
		args []string
		want bool
	}{
		{"NO_COLOR=", []string{"get", "intents"}, true},
		{"NO_COLOR=1", []string{"get", "flavors"}, false},
		{"NO_COLOR=", []string{"get", "intents", "--color", "never"}, false},
		{"NO_COLOR=1", []string{"get", "intents", "--color=always"}, true},
	} {
		out := screen(c.env, c.args...)
		if strings.Contains(out, "\x1b[") != c.want || !strings.Contains(out, "STATE") {
			t.Errorf("%s %v shows\n%q", c.env, c.args, out)
		}
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 110 {
				t.Errorf("%v: a line has %d columns: %s", c.args, n, line)
			}
		}
	}
}

// screen is a writer that may be read while it is written.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A watched list is drawn anew on a terminal; a pipe gets what has changed, and
// what goes wrong meanwhile is said and does not end it.
func TestWatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	run := func(ctx context.Context, terminal bool, out, errs io.Writer, args ...string) int {
		return cli.Run(ctx, cli.Streams{In: strings.NewReader(""), Out: out, Err: errs, Terminal: terminal, Now: func() time.Time { return noon }}, args)
	}
	run(t.Context(), false, io.Discard, io.Discard, "init", dir)
	for _, terminal := range []bool{false, true} {
		var out, errs screen
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, terminal, &out, &errs, "get", "tenants", "-C", dir, "--watch", "--watch-interval", "100ms")
		}()
		sees := func(what string, fn func() bool) {
			t.Helper()
			envtest.Eventually(t, what, func(context.Context) bool { return fn() })
		}
		sees("the first picture", func() bool { return strings.Contains(out.String(), "vision") })
		tenant := filepath.Join(dir, "tenants/vision.yaml")
		text, err := os.ReadFile(tenant)
		if err != nil {
			t.Fatal(err)
		}
		write := func(path string, content []byte) {
			t.Helper()
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if terminal {
			sees("it drawn anew", func() bool { return strings.Count(out.String(), "\x1b[H\x1b[2J") > 2 })
		} else if err := os.Rename(filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "gone")); err != nil {
			t.Fatal(err)
		} else {
			sees("what is wrong", func() bool { return strings.Contains(errs.String(), "has no fleet.yaml") })
			if err := os.Rename(filepath.Join(dir, "gone"), filepath.Join(dir, "fleet.yaml")); err != nil {
				t.Fatal(err)
			}
		}
		write(tenant, bytes.Replace(text, []byte("{gpu: 8}"), []byte("{gpu: 13}"), 1))
		sees("the change", func() bool { return strings.Contains(out.String(), "13") })
		write(tenant, text)
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("it ends with %d: %s", code, errs.String())
		}
		if lines := strings.Count(out.String(), "vision"); !terminal && lines > 3 {
			t.Errorf("a pipe got %d lines:\n%s", lines, out.String())
		}
	}
}
