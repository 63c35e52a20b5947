package cli

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
)

// running is a daemon of a test, with its log.
type running struct {
	t         *testing.T
	operators string
	stop      context.CancelFunc
	ended     chan int
	mu        sync.Mutex
	log       strings.Builder
}

// Write implements io.Writer: the log.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *running) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func startRun(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, operators: freeAddress(t), stop: stop, ended: make(chan int, 1)}
	go func() {
		r.ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: io.Discard, Err: r, Now: time.Now},
			append([]string{"run", "--unsigned", "--agents-address", "", "--operators-address", r.operators, "--notify=false"}, args...))
	}()
	return r
}

// probe is the status of a probe, and the first reason it gives; 0 when nobody
// listens.
func (r *running) probe(path string) (status int, reason string) {
	r.t.Helper()
	answer, err := http.Get("http://" + r.operators + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	var body struct{ Checks []struct{ Reason string } }
	_ = json.NewDecoder(answer.Body).Decode(&body)
	for _, c := range body.Checks {
		if c.Reason != "" {
			return answer.StatusCode, c.Reason
		}
	}
	return answer.StatusCode, ""
}

// await probes until the status is the expected one.
func (r *running) await(path string, status int) (reason string) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		got, reason := r.probe(path)
		if got == status {
			return reason
		}
		select {
		case code := <-r.ended:
			r.t.Fatalf("the daemon ends with %d: %s", code, r.logged())
		case <-deadline:
			r.t.Fatalf("%s answers %d %s, want %d: %s", path, got, reason, status, r.logged())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *running) end() {
	r.t.Helper()
	r.stop()
	if code := <-r.ended; code != 0 {
		r.t.Errorf("the daemon ends with %d: %s", code, r.logged())
	}
}

// A start while git is out of reach waits, alive and not ready, and says why:
// without a local copy, and with one. It goes on once git is back.
func TestRun_WaitsForGitAtItsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work, bare, away, state := filepath.Join(dir, "fleet"), filepath.Join(dir, "fleet.git"), filepath.Join(dir, "away.git"), filepath.Join(dir, "state")
	if code, out := command(t, "init", work); code != 0 {
		t.Fatal(out)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "A fleet"}, {"clone", "-q", "--bare", ".", away}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"without a local copy", "with one"} {
		d := startRun(t, "--state-dir", state, "--repo", "file://"+bare, "--poll-interval", "1s")
		if reason := d.await("/readyz", http.StatusServiceUnavailable); reason == "" {
			t.Errorf("%s: not ready, without a reason", name)
		}
		d.await("/healthz", http.StatusOK)
		for range 20 { // it stays so
			if status, _ := d.probe("/readyz"); status != http.StatusServiceUnavailable && status != 0 {
				t.Errorf("%s: /readyz answers %d", name, status)
			}
		}
		// With a local copy the branch is known, and the loop itself waits.
		if waits := strings.Contains(d.logged(), "the daemon waits"); waits != (name == "without a local copy") {
			t.Errorf("%s: %s", name, d.logged())
		} else if waits {
			logtest.Wants(t, d.logged(), "FB1057")
		}
		move(away, bare)
		d.await("/readyz", http.StatusOK)
		d.end()
		unlock(t, bare)
		move(bare, away)
	}
}

// A git server that takes the connection and answers nothing: /readyz has how long that lasts.
func TestRun_ReportsHowLongGitHasNotAnswered(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	d := startRun(t, "--repo", "http://"+l.Addr().String()+"/fleet.git")
	defer d.end()
	for deadline := time.Now().Add(time.Minute); ; {
		reason := d.await("/readyz", http.StatusServiceUnavailable)
		switch {
		case strings.HasPrefix(reason, "starting: the fleet repo has not answered for ") && !strings.HasSuffix(reason, " 0s"):
			return
		case time.Now().After(deadline):
			t.Fatalf("/readyz has the reason %q, want how long git has not answered", reason)
		}
	}
}

// unlock removes the locks that git leaves behind when it is ended in the middle
// of a push, as the server's operator would.
func unlock(t *testing.T, bare string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(bare, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".lock" {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
