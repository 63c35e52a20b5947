package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// looked is a fleet of 10,000 contracts and 1,000 flavors, of which pages are looked at.
var looked = gen.Options{Tenants: 50, Intents: 220, Held: 200, Waiting: 5, Providers: 100, Flavors: 10, Consumers: 4, Delivery: "none", Now: made}

// board is the dashboard of a daemon.
type board struct {
	*ui.UI
	d *daemon

	mu   sync.Mutex
	last *reconciler.View
	snap *view.Snapshot
	n    int
}

func newBoard(d *daemon) *board {
	b := &board{d: d}
	b.UI = ui.New(ui.Options{
		State: b.state, Viewer: func(*http.Request) view.Viewer { return view.Viewer{All: true} },
		History: d.repo, Audited: d.repo, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	return b
}

// state is the newest round's, as the daemon's main gives it.
func (b *board) state() *view.Snapshot {
	v := b.d.View()
	b.mu.Lock()
	defer b.mu.Unlock()
	if v != b.last {
		b.n++
		b.last, b.snap = v, &view.Snapshot{Inputs: v.Inputs, Ledger: v.Ledger, Fleet: v.Fleet, Contracts: v.Contracts, World: &v.World, Plan: v.Plan, States: v.States(), Heard: b.d.market.Heard, Version: fmt.Sprint(b.n)}
	}
	return b.snap
}

// get is how long a page takes.
func (b *board) get(tb testing.TB, path string) time.Duration {
	tb.Helper()
	begin := time.Now()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, path, nil))
	took := time.Since(begin)
	if w.Code != http.StatusOK {
		tb.Fatalf("%s: %d %.300s", path, w.Code, w.Body)
	}
	return took
}

// BenchmarkPages measures each page of a fleet of 10,000 contracts and 1,000 flavors, and
// rounds with people looking and without.
func BenchmarkPages(b *testing.B) {
	p := serve(b, looked)
	d := start(b, p)
	d.round(b)
	if n := d.settle(b); n > 0 {
		b.Fatalf("the generated fleet is not at rest: %d commits", n)
	}
	show := newBoard(d)
	v := d.View()
	var contract, flavor, intent string
	for c := range v.Contracts.Contracts() {
		contract = "/contracts/" + c.Metadata.Name
		flavor = "/flavors/" + url.PathEscape(c.Spec.Provider) + "/" + url.PathEscape(c.Spec.Flavor)
		intent = "/intents/" + c.Metadata.Namespace + "/" + c.Spec.Intent.Name
		break
	}
	if v.Contracts.Len() < 10_000 || len(v.World.Offers) < 1000 {
		b.Fatalf("the fleet has %d contracts and %d offers", v.Contracts.Len(), len(v.World.Offers))
	}
	first := show.get(b, "/ui/")
	results.note("pages: the first after a start, which makes the model", fmt.Sprintf("%.4g ms", ms(first)))
	pages := []string{
		"/", "/intents", intent, intent + "/offers", "/queue", "/contracts", "/contracts?page=100&size=100", "/contracts?q=job-0019", contract, "/flavors", "/flavors?size=1000", flavor,
		"/providers", "/providers/site-000", "/tenants", "/tenants/team-000", "/peerings", "/peerings/home-00/site-000", "/calendar", "/calendar?days=366&size=1000", "/cost", "/cost?by=contract&month=all", "/cost?by=label:app", "/commits", "/audit",
	}
	for b.Loop() {
		for _, path := range pages {
			var took, used []time.Duration
			for range repetitions {
				runtime.GC()
				before := cpuTime(b)
				took = append(took, show.get(b, "/ui"+path))
				used = append(used, cpuTime(b)-before)
			}
			name := path
			switch path {
			case intent:
				name = "/intents/…"
			case intent + "/offers":
				name = "/intents/…/offers"
			case contract:
				name = "/contracts/…"
			}
			results.below("page "+name+fmt.Sprintf(" (processor %.3g ms)", ms(median(used))), ms(median(took)), 100, "ms")
		}
		// As a browser sees the page after a round: the former model, or the new one.
		var took, alone, watched, aloneUsed, watchedUsed []time.Duration
		n := 0
		round := func() time.Duration {
			n++
			d.report(b, n)
			begin := time.Now()
			if out := d.round(b); out.Plan == nil || out.Plan.Changes() {
				b.Fatalf("want a plan of keeps, got %+v", out)
			}
			return time.Since(begin)
		}
		for range repetitions {
			round()
			took = append(took, show.get(b, "/ui/contracts"))
			<-time.After(300 * time.Millisecond) // the model is made meanwhile
		}
		results.below("page /contracts, the first after a round", ms(median(took)), 100, "ms")
		for range repetitions { // in turn: the machine may be busy with other things
			runtime.GC()
			before := cpuTime(b)
			alone = append(alone, round())
			aloneUsed = append(aloneUsed, cpuTime(b)-before)
			ctx, stop := context.WithCancel(b.Context())
			var people sync.WaitGroup
			for i := range 10 { // each fetches a page a second, as live pages do at most
				people.Go(func() {
					for ctx.Err() == nil {
						show.get(b, "/ui"+pages[i])
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
					}
				})
			}
			<-time.After(200 * time.Millisecond)
			runtime.GC()
			before = cpuTime(b)
			watched = append(watched, round())
			watchedUsed = append(watchedUsed, cpuTime(b)-before)
			stop()
			people.Wait()
		}
		results.note(fmt.Sprintf("round that plans and finds only keeps, nobody looks (processor %.3g ms)", ms(median(aloneUsed))), fmt.Sprintf("%.4g ms", ms(median(alone))))
		results.note(fmt.Sprintf("the same while ten people have live pages open (all: processor %.3g ms)", ms(median(watchedUsed))), fmt.Sprintf("%.4g ms", ms(median(watched))))
	}
}
