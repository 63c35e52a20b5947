//go:build e2e && full

package replicas

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// forge passes requests of one replica on to git, counts them, and asks to be left alone
// until a time.
type forge struct {
	mu    sync.Mutex
	until time.Time
	asked int
}

func (f *forge) limit(until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = until
}

// took is how often it was asked since it was looked at last.
func (f *forge) took() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.asked
	f.asked = 0
	return n
}

func (f *forge) before(git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		f.mu.Lock()
		f.asked++
		left := time.Until(f.until)
		f.mu.Unlock()
		if left > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(left.Seconds())+1))
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		git.ServeHTTP(w, q)
	})
}

// A forge asks who decides to be left alone for longer than the fleet repo may be away: all
// replicas leave it alone, it goes on to decide, and does when the time is over.
func TestAForgeLimitsReads(t *testing.T) {
	t.Parallel() // most of it is waiting
	ctx, h := newHub(t, asking, 3)
	h.awaitStore(ctx, h.all...)
	git, err := url.Parse(h.rig.Git.URL(rig.Repo))
	if err != nil {
		t.Fatal(err)
	}
	forges := map[*replica]*forge{}
	for _, r := range h.all {
		f := &forge{}
		srv := httptest.NewServer(f.before(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: git.Host})))
		t.Cleanup(srv.Close)
		at := srv.Listener.Addr().String()
		forges[r] = f
		r.git.Lead(func() string { return at })
	}
	for end := time.Now().Add(patience); ; rest(ctx, 100*time.Millisecond) {
		asked := 0
		for _, f := range forges {
			f.mu.Lock()
			asked += min(f.asked, 1)
			f.mu.Unlock()
		}
		if asked == len(forges) {
			break
		}
		if time.Now().After(end) {
			h.logs(ctx)
			t.Fatalf("%d of %d replicas ask the forge", asked, len(forges))
		}
	}
	leader := h.decider(ctx, nil)
	began := time.Now()
	until := began.Add(80 * time.Second)
	forges[leader].limit(until)
	rest(ctx, 20*time.Second) // a poll, a beat, and what is under way
	for _, f := range forges {
		f.took()
	}
	for time.Until(until) > 2*time.Second {
		rest(ctx, time.Second)
		if now := h.decider(ctx, nil); now != leader {
			t.Fatalf("after %s %s decides, and %s did", time.Since(began).Round(time.Second), now.Name, leader.Name)
		}
	}
	for r, f := range forges {
		if n := f.took(); n > 0 {
			t.Errorf("%s (%s was limited) asked the forge %d times within a minute in which it asked to be left alone", r.Name, leader.Name, n)
		}
	}
	if t.Failed() {
		h.logs(ctx)
	}
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	file := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: after, namespace: vision}\n" +
		"spec:\n  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, gpu: {count: 1, models: [nvidia-h100]}}\n"
	if _, err := team.CommitAndPush(ctx, "Ask for after", map[string]string{"intents/vision/after.yaml": file}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !h.placed(ctx, "after"); rest(ctx, 100*time.Millisecond) {
		if time.Now().After(end) {
			h.logs(ctx)
			t.Fatal("nothing is placed when the time is over")
		}
	}
}
