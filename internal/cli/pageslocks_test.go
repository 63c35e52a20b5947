package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// brake stops a page in the middle of its work: where it comes to the armed point first.
type brake struct {
	mu      sync.Mutex
	armed   string
	stopped chan struct{} // closed once a page stands at the armed point
	free    chan struct{} // closed to let it go on
}

func armed(point string) *brake {
	return &brake{armed: point, stopped: make(chan struct{}), free: make(chan struct{})}
}

// at passes a point, or waits there until it is freed.
func (b *brake) at(point string) {
	b.mu.Lock()
	hold := b.armed == point
	if hold {
		b.armed = ""
	}
	b.mu.Unlock()
	if hold {
		close(b.stopped)
		<-b.free
	}
}

// braked is the context of a request, which a page asks who calls, and whether the caller is
// still there.
type braked struct {
	context.Context

	b *brake
}

func (c braked) Value(key any) any { c.b.at("caller"); return c.Context.Value(key) }
func (c braked) Err() error        { c.b.at("patience"); return c.Context.Err() }

// slow is a client that does not read.
type slow struct {
	*httptest.ResponseRecorder

	b *brake
}

func (w slow) WriteHeader(status int) {
	w.b.at("head")
	w.ResponseRecorder.WriteHeader(status)
}

func (w slow) Write(p []byte) (int, error) {
	w.b.at("answer")
	return w.ResponseRecorder.Write(p)
}

// looked is a daemon without its goroutines: the test makes each round and serves each page.
type looked struct {
	*daemon

	t      *testing.T
	serves http.Handler
	clock  atomic.Pointer[brake] // by which a page stops that asks for the time
	bare   string
	trees  [2]string // of inputs, each of which asks for more or less than the other
	head   string    // of the inputs
	rounds int
}

func startLooked(t *testing.T) *looked {
	t.Helper()
	dir, work, bare, git := initFleet(t)
	l := &looked{t: t, bare: bare}
	l.clock.Store(armed(""))
	for i := range l.trees {
		intent := fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: looked, namespace: vision}\nspec:\n  resources: {cpu: \"%d\", memory: 1Gi, gpu: \"L4:1\"}\n  offload: {namespaces: [{name: vision, create: true}]}\n", i+1)
		if err := os.WriteFile(filepath.Join(work, "intents", "vision", "looked.yaml"), []byte(intent), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", "Ask")
		git("push", "-q", "origin", "main")
		l.trees[i], l.head = l.git("rev-parse", "main^{tree}"), l.git("rev-parse", "main")
	}
	o := &runOptions{streams: Streams{Out: io.Discard, Err: io.Discard, Now: l.now}, operators: "127.0.0.1:0"}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.register(flags)
	o.store.Register(flags)
	if err := flags.Parse([]string{"--repo", "file://" + bare, "--state-dir", filepath.Join(dir, "state")}); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.daemon, err = o.build(t.Context(), slog.New(slog.DiscardHandler), o.streams.Now, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	if err := o.join(t.Context(), l.daemon); err != nil {
		t.Fatal(err)
	}
	port, err := o.operatorsPort(l.daemon, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.serves = port.Handler
	return l
}

// now is the daemon's clock.
func (l *looked) now() time.Time {
	var callers [1]uintptr
	if runtime.Callers(2, callers[:]) == 1 {
		if f, _ := runtime.CallersFrames(callers[:]).Next(); strings.Contains(f.Function, "/internal/ui.") {
			l.clock.Load().at("time")
		}
	}
	return time.Now()
}

// git is the output of a git command on the fleet repo.
func (l *looked) git(args ...string) string {
	l.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", l.bare, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// round makes the daemon read another request, decide, commit and push, and returns once
// there is nothing more to do.
func (l *looked) round(ctx context.Context) error {
	for committed := false; ; {
		l.loop.Reread()
		out, err := l.loop.Round(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("a round: %w", err)
		case len(out.Committed) > 0:
			committed = true
		case out.Again:
		case !committed:
			return errors.New("a round read another request and committed nothing")
		default:
			return nil
		}
	}
}

// ask commits another request to the inputs.
func (l *looked) ask() {
	l.t.Helper()
	l.rounds++
	l.head = l.git("commit-tree", l.trees[l.rounds%2], "-p", l.head, "-m", "Ask again")
	l.git("update-ref", "refs/heads/main", l.head)
}

// reader is a request under way.
type reader struct {
	path   string
	brake  *brake
	answer *httptest.ResponseRecorder
	over   chan struct{}
	leave  func()
}

// open asks for a page that stops at a point.
func (l *looked) open(path, point string) *reader {
	ctx, leave := context.WithCancel(l.t.Context())
	p := &reader{path, armed(point), httptest.NewRecorder(), make(chan struct{}), leave}
	if point == "time" {
		l.clock.Store(p.brake)
	}
	r := httptest.NewRequest(http.MethodGet, path, nil).WithContext(braked{ctx, p.brake})
	go func() {
		defer close(p.over)
		l.serves.ServeHTTP(slow{p.answer, p.brake}, r)
	}()
	return p
}

// TestPages_HoldUpNoRound: wherever pages stop in the middle of their work, because the
// machine is busy or their readers do not read, the daemon reads, decides, commits and pushes
// a request. So no page holds a lock that a round needs. What counts is that the round ends at
// all, not how long it takes: the time limit is for one that never would.
func TestPages_HoldUpNoRound(t *testing.T) {
	const never = time.Minute
	l := startLooked(t)
	next := func() {
		t.Helper()
		l.ask()
		if err := l.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	next()
	contract := ""
	for c := range l.loop.View().Contracts.Contracts() {
		if c.Spec.Intent.Name == "looked" {
			contract = c.Metadata.Name
		}
	}
	if contract == "" {
		t.Fatal("the request was not placed")
	}
	all := []string{
		"/ui/", "/ui/intents", "/ui/intents/vision/looked", "/ui/intents/vision/looked/offers", "/ui/queue", "/ui/contracts", "/ui/contracts/" + contract, "/ui/flavors", "/ui/flavors/paris/l4",
		"/ui/providers", "/ui/providers/paris", "/ui/tenants", "/ui/tenants/vision", "/ui/peerings", "/ui/calendar", "/ui/cost", "/ui/commits", "/ui/audit", "/ui/capacity",
		"/api/ui/fleet", "/api/ui/openapi.json", "/api/ui/cost.csv", "/metrics", "/readyz", "/ui/events",
	}
	end := all[:len(all)-1] // the last one goes on
	for _, at := range []struct {
		point string
		pages []string // several stand at once where none of them waits for another
		stand int      // how many come there at least
	}{
		{"caller", all, len(all) - 4}, {"head", end, len(all) - 4}, {"answer", all, len(all)},
		{"patience", []string{"/ui/"}, 1}, {"patience", []string{"/ui/audit"}, 1}, {"time", []string{"/ui/"}, 1}, {"time", []string{"/metrics"}, 1},
	} {
		next() // what there is to show is new
		l.ask()
		var open []*reader
		stand := 0
		for _, path := range at.pages {
			p := l.open(path, at.point)
			open = append(open, p)
			select {
			case <-p.brake.stopped:
				stand++
			case <-p.over:
			case <-time.After(never):
				t.Fatalf("%s waits for another page, which stands at its %s", path, at.point)
			}
		}
		if stand < at.stand {
			t.Errorf("%d of %d pages came to their %s, want %d", stand, len(open), at.point, at.stand)
		}
		ended := make(chan error, 1)
		go func() { ended <- l.round(t.Context()) }()
		var err error
		held := false
		select {
		case err = <-ended:
		case <-time.After(never):
			held = true
			stacks := make([]byte, 1<<20)
			t.Errorf("no round ends while %v stand at their %s: one holds a lock that a round needs\n%s", at.pages, at.point, stacks[:runtime.Stack(stacks, true)])
		}
		for _, p := range open {
			close(p.brake.free)
			if p.path == "/ui/events" { // it goes on until its reader leaves
				p.leave()
			}
			<-p.over
			p.leave()
			if p.answer.Code != http.StatusOK {
				t.Errorf("%s, once it went on: %d", p.path, p.answer.Code)
			}
		}
		if held {
			err = <-ended
		}
		if err != nil {
			t.Errorf("while %v stood at their %s: %v", at.pages, at.point, err)
		}
	}
}
