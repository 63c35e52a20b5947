package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// watched is a fleet of 1,000 contracts whose pages are looked at while rounds are made.
var watched = gen.Options{Tenants: 20, Intents: 60, Held: 50, Waiting: 5, Providers: 20, Flavors: 5, Consumers: 2, Delivery: "none", Now: made}

// news is a round that plans, because a provider reports something else, and what the
// daemon does after it.
func (b *board) news(tb testing.TB, n int) {
	tb.Helper()
	b.d.report(tb, n)
	if out := b.d.round(tb); out.Plan == nil {
		tb.Fatalf("want a round that plans, got %+v", out)
	}
	b.Changed()
}

// gate holds one request up at one place, until it is opened.
type gate struct {
	mu      sync.Mutex
	at      string
	arrived chan struct{} // closed once it is held up
	open    chan struct{}
}

func (g *gate) close(at string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.arrived, g.open = at, make(chan struct{}), make(chan struct{})
}

func (g *gate) pass(at string) {
	g.mu.Lock()
	open := g.open
	if g.at != at {
		g.mu.Unlock()
		return
	}
	g.at = ""
	close(g.arrived)
	g.mu.Unlock()
	<-open
}

// gated is a history that is held up.
type gated struct {
	*gitrepo.Repo
	*gate
}

// Info implements ui.History.
func (g gated) Info(h tree.Hash) (gitrepo.Commit, error) { g.pass("commit"); return g.Repo.Info(h) }

// Tree implements ui.History.
func (g gated) Tree(h tree.Hash) (tree.Tree, error) { g.pass("files"); return g.Repo.Tree(h) }

// slow is an answer whose reader takes nothing.
type slow struct {
	*httptest.ResponseRecorder
	*gate
}

func (s slow) Write(b []byte) (int, error) { s.pass("answer"); return s.ResponseRecorder.Write(b) }

// TestPages_HoldNoRoundUp: a page that stands still, wherever it asks the daemon for
// something or writes its answer, keeps no round from its end. What a round needs is held by
// no page.
func TestPages_HoldNoRoundUp(t *testing.T) {
	d := start(t, serve(t, watched))
	d.round(t)
	d.settle(t)
	g := &gate{}
	b := &board{d: d}
	b.UI = ui.New(ui.Options{
		State:  func() *view.Snapshot { g.pass("state"); return b.state() },
		Viewer: func(*http.Request) view.Viewer { g.pass("viewer"); return view.Viewer{All: true} },
		Now:    func() time.Time { g.pass("now"); return time.Now() }, History: gated{d.repo, g}, Audited: d.repo, Log: slog.New(slog.DiscardHandler),
	})
	n := 0
	for at, path := range map[string]string{
		"state": "/ui/", "viewer": "/ui/contracts", "now": "/ui/cost", "commit": "/ui/commits", "files": "/ui/tenants/team-000", "answer": "/api/ui/contracts",
	} {
		n++
		b.news(t, 2*n)
		g.close(at)
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.ServeHTTP(slow{httptest.NewRecorder(), g}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		}()
		select {
		case <-g.arrived:
		case <-served:
			t.Errorf("%s asks for no %s: the test shows nothing", path, at)
			continue
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			b.news(t, 2*n+1)
		}()
		select {
		case <-over:
		case <-time.After(2 * time.Minute):
			t.Errorf("a page that stands still at %s holds the round up", at)
		}
		close(g.open)
		<-over
		<-served
	}
}

// TestPages_CostRoundsLittle: while ten people fetch pages as fast as they come, rounds wait
// for locks that pages hold for less than a twentieth of their time, and what ten open pages
// cost after a round is less processor time than the round itself. Both are ratios, so that a
// busy machine changes nothing.
func TestPages_CostRoundsLittle(t *testing.T) {
	d := start(t, serve(t, watched))
	d.round(t)
	d.settle(t)
	b := newBoard(d)
	paths := []string{"/ui/", "/ui/intents", "/ui/queue", "/ui/contracts", "/ui/flavors", "/ui/providers", "/ui/tenants", "/ui/cost", "/ui/commits", "/ui/calendar"}
	const rounds = 11
	var round, looks []time.Duration
	for n := range rounds {
		runtime.GC()
		before := cpuTime(t)
		b.news(t, n+1)
		round = append(round, cpuTime(t)-before)
		before = cpuTime(t)
		for _, path := range paths { // the first makes the model
			b.get(t, path)
		}
		looks = append(looks, cpuTime(t)-before)
	}
	t.Logf("processor time: a round %s, ten pages after it %s", median(round), median(looks))
	if median(looks) > median(round) {
		t.Errorf("ten pages take %s of processor time after a round, which takes %s", median(looks), median(round))
	}

	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	_, begun := waited(t)
	ctx, stop := context.WithCancel(t.Context())
	var people sync.WaitGroup
	fetched := make([]int, len(paths))
	for i, path := range paths {
		people.Go(func() {
			for ; ctx.Err() == nil; fetched[i]++ {
				b.get(t, path)
			}
		})
	}
	begin := time.Now()
	for n := range rounds {
		b.news(t, rounds+n+1)
	}
	took := time.Since(begin)
	stop()
	people.Wait()
	text, ended := waited(t)
	all := 0
	for _, n := range fetched {
		all += n
	}
	t.Logf("%d rounds in %s while %d pages were fetched; waits for locks that pages held: %s", rounds, took, all, ended-begun)
	if all < rounds {
		t.Fatalf("%d pages during %d rounds: the test shows nothing", all, rounds)
	}
	if ended-begun > took/20 {
		t.Errorf("of %s others waited %s for locks that pages held:\n%s", took, ended-begun, text)
	}
}

// waited is how long goroutines have waited for locks of other packages that pages held,
// and where. Locks of the dashboard's own, and of this test's board, hold up pages alone.
func waited(t *testing.T) (where string, long time.Duration) {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("mutex").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	perSecond, cycles, at := 0.0, 0.0, ""
	var found strings.Builder
	var stack []string
	flush := func() {
		whole := strings.Join(stack, "\n")
		if len(stack) > 0 && !strings.HasPrefix(stack[0], "runtime.") && strings.Contains(whole, "internal/ui.") && !strings.Contains(stack[0], "internal/ui") && !strings.Contains(stack[0], "bench.(*board)") {
			long += time.Duration(cycles / perSecond * float64(time.Second))
			fmt.Fprintf(&found, "%s\n%s\n", at, whole)
		}
		stack = nil
	}
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		line := lines.Text()
		switch rest, is := strings.CutPrefix(line, "cycles/second="); {
		case is:
			perSecond, _ = strconv.ParseFloat(rest, 64)
		case strings.Contains(line, " @ "):
			flush()
			at = line
			cycles, _ = strconv.ParseFloat(strings.Fields(line)[0], 64)
		case strings.HasPrefix(line, "#"):
			if fields := strings.Fields(line); len(fields) > 2 && !strings.HasPrefix(fields[2], "sync.") && !strings.HasPrefix(fields[2], "internal/sync.") {
				stack = append(stack, fields[2])
			}
		}
	}
	flush()
	if perSecond == 0 {
		t.Fatalf("no profile of locks: %.300s", text.String())
	}
	return found.String(), long
}
