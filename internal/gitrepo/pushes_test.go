package gitrepo_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// ticking is a clock that sleepers move.
type ticking struct {
	mu    sync.Mutex
	at    time.Time
	slept time.Duration
}

func (c *ticking) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *ticking) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.slept = c.at.Add(d), c.slept+d
	return ctx.Err()
}

func (c *ticking) budget(l pushbudget.Limit) *pushbudget.Budget {
	b := pushbudget.New(pushbudget.Options{Default: l, Now: c.now, Sleep: c.sleep})
	c.at = c.at.Add(time.Hour)
	return b
}

// limiting is a real git server behind a forge that limits.
type limiting struct {
	*httptest.Server
	mu sync.Mutex
	// refuse answers instead of the server, when it is set and says that it has.
	refuse func(w http.ResponseWriter, r *http.Request) bool
	// pushes are the packs that reached the forge, whatever became of them.
	pushes int
}

func limitedServer(t *testing.T, dir string) *limiting {
	t.Helper()
	l := &limiting{}
	backend := serveGit(t, filepath.Dir(dir))
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			l.pushes++
		}
		refuse := l.refuse
		l.mu.Unlock()
		if refuse != nil && refuse(w, r) {
			return
		}
		backend.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

func isPush(r *http.Request) bool { return strings.Contains(r.URL.String(), "git-receive-pack") }

// TestForgeLimitsAreObeyed over HTTP: what is limited is answered at once, nothing more is
// sent before the time that the forge named, and then it works.
func TestForgeLimitsAreObeyed(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"429 in seconds": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "120")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		},
		"429 as a date": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", noon.Add(time.Hour+2*time.Minute).Format(http.TimeFormat))
			http.Error(w, "slow down", http.StatusTooManyRequests)
		},
		"403 of a secondary limit": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "120")
			http.Error(w, `{"message":"You have exceeded a secondary rate limit"}`, http.StatusForbidden)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t)
			srv := limitedServer(t, dir)
			clock := &ticking{at: noon}
			b := clock.budget(pushbudget.Limit{})
			remote := b.Remote(dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Answer: b.Answered, Another: b.Another}), "ledger")
			r := open(t, remote, options())
			commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			srv.refuse = func(w http.ResponseWriter, r *http.Request) bool {
				if isPush(r) && clock.now().Before(noon.Add(time.Hour+2*time.Minute)) {
					answer(w)
					return true
				}
				return false
			}
			before := srv.pushes
			q := request(fetch(t, r), contract("vision", "b", "1"))
			var held *gitrepo.ErrHeld
			for i := range 3 {
				if _, err := r.Commit(t.Context(), q); !errors.As(err, &held) || !held.Until.Equal(noon.Add(time.Hour+2*time.Minute)) {
					t.Fatalf("commit %d: %v, want it held until 13:02", i, err)
				}
			}
			if n := srv.pushes - before; n != 1 {
				t.Errorf("the forge was sent %d pushes, and said no to the first", n)
			}
			if err := b.Err(); err == nil {
				t.Error("the limit is no reason not to be ready")
			}
			fetch(t, r) // reads go on
			clock.at = held.Until
			commit(t, r, q)
			if b.Err() != nil {
				t.Error("still held")
			}
		})
	}
}

// TestMissingRightIsNoLimit: a 403 that says nothing of limits is a refusal as before.
func TestMissingRightIsNoLimit(t *testing.T) {
	dir := bare(t)
	srv := limitedServer(t, dir)
	clock := &ticking{at: noon}
	b := clock.budget(pushbudget.Limit{})
	r := open(t, b.Remote(dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Answer: b.Answered}), "ledger"), options())
	q := request(fetch(t, r), contract("vision", "a", "1"))
	srv.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if isPush(r) {
			http.Error(w, "write access to repository not granted", http.StatusForbidden)
		}
		return isPush(r)
	}
	var refused *gitrepo.ErrRefused
	if _, err := r.Commit(t.Context(), q); !errors.As(err, &refused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if b.Err() != nil {
		t.Errorf("held: %v", b.Err())
	}
}

// TestLimitOfReadsOverHTTP holds both, and the words name the answer.
func TestLimitOfReadsOverHTTP(t *testing.T) {
	dir := bare(t)
	srv := limitedServer(t, dir)
	clock := &ticking{at: noon}
	b := clock.budget(pushbudget.Limit{})
	r := open(t, b.Remote(dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Answer: b.Answered}), "ledger"), options())
	fetch(t, r)
	asked := 0
	srv.refuse = func(w http.ResponseWriter, _ *http.Request) bool {
		asked++
		w.Header().Set("Retry-After", "60")
		http.Error(w, "slow down", http.StatusTooManyRequests)
		return true
	}
	for range 3 {
		if _, err := r.Fetch(t.Context()); err == nil {
			t.Fatal("fetched")
		}
	}
	_, err := r.Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "answered 429") {
		t.Errorf("got %v, want it to name the answer", err)
	}
	if asked != 1 {
		t.Errorf("asked %d times within the minute that the forge named", asked)
	}
	srv.refuse = nil
	clock.at = clock.at.Add(time.Minute)
	fetch(t, r)
}

// TestRefusedPushesCount: a remote that refuses one item of several is asked in halves
// until the culprit stands alone, each of which is a push and waits its turn.
func TestRefusedPushesCount(t *testing.T) {
	m := seeded(t)
	m.Hook = func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.Contains(p, "/bad.yaml") {
				return errors.New("hook declined")
			}
		}
		return nil
	}
	clock := &ticking{at: noon}
	b := clock.budget(pushbudget.Limit{PerMinute: 6, Burst: 2})
	r := open(t, b.Remote(m, "ledger"), options(func(o *gitrepo.Options) { o.Now = clock.now }))
	q := request(fetch(t, r), contract("vision", "a", "1"), contract("vision", "b", "1"), contract("vision", "bad", "1"), contract("vision", "c", "1"))
	q.When = clock.now()
	res := commit(t, r, q)
	if len(res.Refused) != 1 || res.Refused[0].Key != "vision/bad" {
		t.Fatalf("refused %v", res.Refused)
	}
	// All four, two twice, and each of the half that was refused.
	f := b.Figures()
	if f.Kinds["ledger"] != 5 || clock.slept != 30*time.Second {
		t.Errorf("%d pushes counted in %s of waiting, want 5 and 30s", f.Kinds["ledger"], clock.slept)
	}
}

// TestLostRaceWithoutBudgetPlansAgain: a commit that lost against another writer is not
// kept until a push may go, because the plan would be old by then.
func TestLostRaceWithoutBudgetPlansAgain(t *testing.T) {
	m := seeded(t)
	clock := &ticking{at: noon}
	b := clock.budget(pushbudget.Limit{PerMinute: 6, Burst: 1})
	r := open(t, b.Remote(m, "ledger"), options(func(o *gitrepo.Options) { o.Now = clock.now }))
	h := fetch(t, r)
	m.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			m.Fault = nil
			team(t, m, "README.md", "moved meanwhile")
			return false, errors.New("lost")
		}
		return true, nil
	}
	other := open(t, m, options())
	fetch(t, other)
	commit(t, other, independent(fetch(t, other), contract("nlp", "x", "1")))
	q := independent(h, contract("vision", "a", "1"))
	q.When = clock.now()
	_, err := r.Commit(t.Context(), q)
	var busy *gitrepo.ErrBusy
	if !errors.As(err, &busy) || clock.slept != 0 {
		t.Errorf("got %v after %s, want to plan again at once", err, clock.slept)
	}
}

// TestPartsOfAPushCount: a server that updates one ref at a time is sent a push for each.
func TestPartsOfAPushCount(t *testing.T) {
	dir := bare(t)
	git(t, dir, "config", "receive.advertiseAtomic", "false")
	srv := limitedServer(t, dir)
	clock := &ticking{at: noon}
	b := clock.budget(pushbudget.Limit{PerMinute: 6, Burst: 2})
	r := open(t, b.Remote(dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Answer: b.Answered, Another: b.Another}), "ledger"), options())
	commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
	var sent uint64
	for _, n := range b.Figures().Kinds {
		sent += n
	}
	if int(sent) != srv.pushes || sent < 2 {
		t.Errorf("%d pushes counted, %d were made", sent, srv.pushes)
	}
	if want := time.Duration(sent-2) * 10 * time.Second; clock.slept != want {
		t.Errorf("waited %s, want %s", clock.slept, want)
	}
}
