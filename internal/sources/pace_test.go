package sources

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// A server that limits requests is left alone as long as it asks, by reads and by pull
// requests of that source; others go on, and its copy stays in force.
func TestKeeper_ALimitOfItsServerIsObeyed(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := newRig(t, func(o *Options) { o.Now = func() time.Time { return at } })
	r.source("own", "vision")
	r.source("fine", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.push("fine", files{"intents/vision/b.yaml": "b: 1\n"}, false)
	r.round()

	var asked atomic.Int32
	limited := atomic.Bool{}
	limited.Store(true)
	inner := r.srv.Config.Handler
	r.srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, "/own.git") {
			inner.ServeHTTP(w, q)
			return
		}
		if asked.Add(1); limited.Load() {
			w.Header().Set("Retry-After", "300")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, q)
	})
	r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
	r.push("fine", files{"intents/vision/b.yaml": "b: 2\n"}, false)
	for range 10 {
		r.round()
		if _, err := r.Pull(t.Context(), "own", "refs/pull/1/head", gitrepo.SideBounds{}); err == nil || !strings.Contains(err.Error(), "not asked before 2026-11-20T12:05:00Z") {
			t.Errorf("a pull request is read: %v", err)
		}
		at = at.Add(30*time.Second - time.Millisecond)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times within the 5 min, want once", n)
	}
	if st, want := r.of("own"), "the git server answered 429 Too Many Requests: it limits requests, and is not asked before 2026-11-20T12:05:00Z"; !strings.HasPrefix(st.Frozen, want) {
		t.Errorf("frozen for %q, want %q", st.Frozen, want)
	}
	if got := r.copied("own")["intents/vision/a.yaml"]; got != "a: 1\n" {
		t.Errorf("copied %q, want what stood before", got)
	}
	if got := r.copied("fine")["intents/vision/b.yaml"]; got != "b: 2\n" || r.of("fine").Frozen != "" {
		t.Errorf("the other source: copied %q, %+v", got, r.of("fine"))
	}
	limited.Store(false)
	at = at.Add(time.Second)
	r.round()
	if got := r.copied("own")["intents/vision/a.yaml"]; got != "a: 2\n" || r.of("own").Frozen != "" {
		t.Errorf("when the time is over: copied %q, %+v", got, r.of("own"))
	}
}

// A replica that does not decide leaves sources alone but for staying warm, and reads them
// within seconds of beginning to decide.
func TestKeeper_WhoDecidesReads(t *testing.T) {
	var decides atomic.Bool
	r := newRig(t, func(o *Options) { o.Every, o.Decides = time.Second, decides.Load })
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	if err := r.Follow(&r.policy, r.ledger); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	read := func() time.Time { return r.of("own").ReadAt }
	until := func(what string, ok func() bool) {
		t.Helper()
		end := time.After(30 * time.Second)
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for !ok() {
			select {
			case <-look.C:
			case <-end:
				t.Fatalf("30 s and no %s: %+v", what, r.of("own"))
			}
		}
	}
	until("first read", func() bool { return !read().IsZero() })
	first := read()
	r.Wake("own")
	<-time.After(4 * time.Second)
	if got := read(); !got.Equal(first) {
		t.Errorf("who does not decide has read again after %s", got.Sub(first))
	}
	decides.Store(true)
	until("read by who decides", func() bool { return read().After(first) })
	second := read()
	until("another one", func() bool { return read().After(second) })
}
