package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// A daemon whose clock jumps by a day in either direction is not ready and says by
// how much its clock is wrong, writes nothing, and goes on when it is right again:
// the git server's answers carry the time. What it holds keeps its term.
func TestRun_WritesNothingByAClockThatJumped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare := laidOut(t, dir)
	server := envtest.Git(t)
	served := server.RepoDir("fleet")
	if out, err := exec.Command("git", "clone", "-q", "--bare", bare, served).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ledger := func() string {
		out, _ := exec.Command("git", "-C", served, "rev-parse", "--verify", "-q", "ledger").Output()
		return strings.TrimSpace(string(out))
	}
	var offset atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	d := &running{t: t, operators: freeAddress(t), stop: stop, ended: make(chan int, 1)}
	go func() {
		d.ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: io.Discard, Err: d, Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }},
			[]string{"run", "--unsigned", "--agents-address", "", "--operators-address", d.operators, "--notify=false", "--poll-interval", "200ms",
				"--state-dir", filepath.Join(dir, "state"), "--repo", server.URL("fleet")})
	}()
	d.await("/readyz", http.StatusOK)
	envtest.Eventually(t, "a decision", func(context.Context) bool { return ledger() != "" })
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		offset.Store(int64(by))
		side := "ahead of"
		if by < 0 {
			side = "behind"
		}
		envtest.Eventually(t, "/readyz to say that the clock is "+side+" the git server's", func(context.Context) bool {
			status, reason := d.probe("/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(reason, "this machine's clock is 2") && strings.Contains(reason, side+" the git server")
		})
		before := ledger()
		// A change is read meanwhile, and not decided on.
		change(t, filepath.Join(dir, "fleet"), served, fmt.Sprintf("intents/vision/jump%d.yaml", by/time.Hour), strings.ReplaceAll(askPlain, "NAME", fmt.Sprintf("jump%d", (by+48*time.Hour)/time.Hour)))
		for range 10 {
			<-time.After(100 * time.Millisecond)
			if got := ledger(); got != before {
				t.Fatalf("a jump by %s: the ledger moved from %s to %s\n%s", by, before, got, d.logged())
			}
		}
		offset.Store(0)
		d.await("/readyz", http.StatusOK)
		envtest.Eventually(t, "a decision by the right time", func(context.Context) bool { return ledger() != before })
	}
	d.end()
}

// change pushes a file of a clone to a bare repository.
func change(t *testing.T, work, to, path, content string) {
	t.Helper()
	b := built{t: t, work: work}
	b.push(path, content)
	b.git("push", "-q", to, "main")
}
