package gitrepo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// hook installs a server-side hook.
func hook(t testing.TB, dir, name, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks", name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// eventually polls a condition that a real process makes true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// urls are the ways to one repository.
func urls(t testing.TB, dir string) map[string]string {
	return map[string]string{"file": "file://" + dir, "http": serveGit(t, filepath.Dir(dir)).URL + "/fleet.git"}
}

func TestHookRefusesOneItem(t *testing.T) {
	dir := bare(t)
	hook(t, dir, "pre-receive", `while read old new ref; do
case $ref in refs/heads/*) if git ls-tree -r --name-only $new | grep -q bad; then echo "policy 7: no bad contracts" >&2; exit 1; fi;; esac
done`)
	for name, url := range urls(t, dir) {
		t.Run(name, func(t *testing.T) {
			r := open(t, dial(t, url, gitrepo.Auth{}), options())
			res := commit(t, r, request(fetch(t, r), contract(name, "a", "1"), contract(name, "bad", "1"), contract(name, "c", "1")))
			if len(res.Refused) != 1 || res.Refused[0].Key != name+"/bad" {
				t.Fatalf("refused: %+v", res.Refused)
			}
			if !strings.Contains(res.Refused[0].Cause.Error(), "policy 7: no bad contracts") {
				t.Errorf("the hook's words are lost: %v", res.Refused[0].Cause)
			}
			if got := git(t, dir, "ls-tree", "-r", "--name-only", "ledger", "contracts/"+name+"/"); !strings.Contains(got, "a.yaml") || !strings.Contains(got, "c.yaml") {
				t.Errorf("on the ledger: %s", got)
			}
		})
	}
}

func TestProtectedBranch(t *testing.T) {
	dir := bare(t)
	hook(t, dir, "update", `case $1 in refs/heads/*) echo "protected branch" >&2; exit 1;; esac`)
	for name, url := range urls(t, dir) {
		t.Run(name, func(t *testing.T) {
			r := open(t, dial(t, url, gitrepo.Auth{}), options())
			_, err := r.Commit(t.Context(), request(fetch(t, r), contract("vision", "a", "1"), contract("vision", "b", "1")))
			var refused *gitrepo.ErrRefused
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "protected branch") {
				t.Errorf("got %v, want ErrRefused with the hook's words", err)
			}
			if refs := git(t, dir, "for-each-ref", "refs/fleetbroker", "refs/heads/ledger"); refs != "" {
				t.Errorf("something was left behind: %s", refs)
			}
		})
	}
}

// Where the server is not atomic, the refs go one by one: the accepted refs may
// lag behind the ledger, never run ahead of it.
func TestServerThatIsNotAtomic(t *testing.T) {
	dir := bare(t)
	git(t, dir, "config", "receive.advertiseAtomic", "false")
	for name, url := range urls(t, dir) {
		t.Run(name, func(t *testing.T) {
			hook(t, dir, "update", "exit 0")
			r := open(t, dial(t, url, gitrepo.Auth{}), options())
			q := request(fetch(t, r), contract(name, "a", "1"))
			res := commit(t, r, q)
			if got := git(t, dir, "rev-parse", "refs/fleetbroker/accepted/ledger"); got != res.Head().String() {
				t.Errorf("accepted: got %s, want %s", got, res.Head())
			}
			hook(t, dir, "update", `case $1 in refs/fleetbroker/*) exit 1;; esac`)
			res2 := commit(t, r, request(fetch(t, r), contract(name, "b", "1")))
			if len(res2.Commits) != 1 || git(t, dir, "rev-parse", "ledger") != res2.Head().String() {
				t.Errorf("the ledger's own ref went through and was not taken for landed: %+v", res2)
			}
			hook(t, dir, "update", `case $1 in refs/heads/*) exit 1;; esac`)
			var refused *gitrepo.ErrRefused
			if _, err := r.Commit(t.Context(), request(fetch(t, r), contract(name, "c", "1"))); !errors.As(err, &refused) {
				t.Errorf("got %v, want ErrRefused", err)
			}
			if got := git(t, dir, "rev-parse", "refs/fleetbroker/accepted/ledger"); got != res.Head().String() {
				t.Errorf("accepted ran ahead to %s", got)
			}
			hook(t, dir, "update", "exit 0")
			fetch(t, open(t, dial(t, url, gitrepo.Auth{}), options()))
			commit(t, r, request(fetch(t, r), contract(name, "d", "1")))
		})
	}
}

// A server that says it is atomic, and is not: git moves the other refs of a push where
// one is a symbolic ref to nothing. What it took is taken back, so that the branch can be
// put back where it stood.
func TestServerThatIsAtomicInPart(t *testing.T) {
	for _, way := range []string{"file", "http"} {
		t.Run(way, func(t *testing.T) {
			dir := bare(t)
			r := open(t, dial(t, urls(t, dir)[way], gitrepo.Auth{}), options())
			stood := commit(t, r, request(fetch(t, r), contract("vision", "a", "1"))).Head().String()
			q := request(fetch(t, r), contract("vision", "b", "1"))
			branch := filepath.Join(dir, "refs", "heads", "ledger")
			if err := os.WriteFile(branch, []byte("ref: refs/heads/ledger\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Commit(t.Context(), q); err == nil || strings.Contains(err.Error(), "taken back") {
				t.Fatalf("got %v, want that the ledger is gone", err)
			}
			if got := git(t, dir, "rev-parse", "refs/fleetbroker/accepted/ledger"); got != stood {
				t.Errorf("accepted ran ahead to %s, of %s", got, stood)
			}
			if err := os.WriteFile(branch, []byte(stood+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			commit(t, r, request(fetch(t, r), contract("vision", "b", "1")))
		})
	}
}

// detached answers requests to the end, whether or not the client waits, and
// can lose the answer.
type detached struct {
	next http.Handler
	lose atomic.Bool
}

func (d *detached) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r2 := r.Clone(context.WithoutCancel(r.Context()))
	r2.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	d.next.ServeHTTP(rec, r2)
	if d.lose.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
		panic(http.ErrAbortHandler)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = rec.Body.WriteTo(w)
}

func TestAnswerLostOverHTTP(t *testing.T) {
	dir := bare(t)
	d := &detached{next: serveGit(t, filepath.Dir(dir)).Config.Handler}
	srv := httptest.NewServer(d)
	defer srv.Close()
	r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{}), options())
	for _, name := range []string{"a", "b"} {
		h := fetch(t, r)
		d.lose.Store(true)
		res := commit(t, r, request(h, contract("vision", name, "1")))
		d.lose.Store(false)
		if got := git(t, dir, "rev-parse", "ledger"); len(res.Commits) != 1 || got != res.Head().String() {
			t.Errorf("%s: the ledger is at %s, reported %+v", name, got, res)
		}
	}
	if got := git(t, dir, "rev-list", "--count", "ledger"); got != "2" {
		t.Errorf("%s commits, want 2", got)
	}
}

// The caller gives up while a hook of the server still runs; the push lands
// afterwards. Nobody was told anything, and a later fetch tells.
func TestGivenUpAndLandedLater(t *testing.T) {
	dir := bare(t)
	marks := t.TempDir()
	in, proceed := filepath.Join(marks, "in"), filepath.Join(marks, "go")
	hook(t, dir, "pre-receive", "touch "+in+"; while [ ! -e "+proceed+" ]; do sleep 0.01; done")
	srv := httptest.NewServer(&detached{next: serveGit(t, filepath.Dir(dir)).Config.Handler})
	defer srv.Close()
	r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{}), options())
	h := fetch(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		eventually(t, "the hook runs", func() bool { _, err := os.Stat(in); return err == nil })
	}()
	res, err := r.Commit(ctx, request(h, contract("vision", "a", "1")))
	var unknown *gitrepo.ErrUnknown
	if !errors.As(err, &unknown) || len(res.Commits) != 0 {
		t.Fatalf("got %+v, %v; want ErrUnknown", res, err)
	}
	if h := fetch(t, r); h.Unsettled != 1 {
		t.Errorf("while the hook runs: %d unsettled, want 1", h.Unsettled)
	}
	if err := os.WriteFile(proceed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var settled []gitrepo.Settled
	eventually(t, "it lands", func() bool {
		settled = append(settled, fetch(t, r).Settled...)
		return len(settled) > 0
	})
	if len(settled) != 1 || !settled[0].Landed || settled[0].Commit != unknown.Commit || settled[0].Keys[0] != "vision/a" {
		t.Errorf("settled: %+v", settled)
	}
}

func TestServerGone(t *testing.T) {
	dir := bare(t)
	srv := serveGit(t, filepath.Dir(dir))
	r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{}), options())
	h := fetch(t, r)
	srv.Close()
	if _, err := r.Fetch(t.Context()); err == nil {
		t.Error("Fetch succeeded")
	}
	var unknown *gitrepo.ErrUnknown
	if _, err := r.Commit(t.Context(), request(h, contract("vision", "a", "1"))); !errors.As(err, &unknown) {
		t.Errorf("Commit: got %v, want ErrUnknown", err)
	}
	if got := content(t, h.Inputs.Tree, "intents/vision/a.yaml"); got != "kind: ResourceIntent\n" {
		t.Errorf("what was fetched: %s", got)
	}
}

func TestEmptyRepositoryAndNoRepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet.git")
	git(t, ".", "init", "-q", "--bare", "-b", "main", dir)
	for name, url := range urls(t, dir) {
		t.Run(name, func(t *testing.T) {
			r := open(t, dial(t, url, gitrepo.Auth{}), options(func(o *gitrepo.Options) { o.Dir, o.Ledger = t.TempDir(), "ledger-"+name }))
			h := fetch(t, r)
			if !h.Inputs.Commit.IsZero() || !h.Inputs.Tree.IsZero() {
				t.Errorf("inputs of an empty repository: %+v", h.Inputs)
			}
			res := commit(t, r, request(h, contract("vision", "a", "1")))
			if got := git(t, dir, "rev-parse", "ledger-"+name); got != res.Head().String() {
				t.Errorf("ledger: got %s, want %s", got, res.Head())
			}
			if h := fetch(t, r); h.Ledger.Commit.Hash != res.Head() {
				t.Errorf("fetched %s", h.Ledger.Commit.Hash)
			}
			git(t, dir, "update-ref", "-d", "refs/heads/ledger-"+name)
			git(t, dir, "update-ref", "-d", "refs/fleetbroker/accepted/ledger")
		})
	}
	for name, url := range urls(t, dir) {
		if _, err := dial(t, strings.Replace(url, "fleet.git", "none.git", 1), gitrepo.Auth{}).Refs(t.Context()); err == nil {
			t.Errorf("%s: a repository that does not exist answers", name)
		}
	}
}

// A server that hangs is left when the context says so.
func TestHangingServer(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := dial(t, srv.URL+"/x.git", gitrepo.Auth{}).Refs(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("http: got %v", err)
	}
	dir := bare(t)
	busy := filepath.Join(t.TempDir(), "busy") // gone when the test ends, and the hook with it
	if err := os.WriteFile(busy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hook(t, dir, "pre-receive", "while [ -e "+busy+" ]; do sleep 0.01; done; exit 1")
	r := open(t, dial(t, dir, gitrepo.Auth{}), options())
	h := fetch(t, r)
	ctx2, cancel2 := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel2()
	start := time.Now()
	var unknown *gitrepo.ErrUnknown
	if _, err := r.Commit(ctx2, request(h, contract("vision", "a", "1"))); !errors.As(err, &unknown) {
		t.Errorf("file: got %v, want ErrUnknown", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// Refs moved without new objects, and refs deleted, on the real server.
func TestAcceptAndPruneOnRealGit(t *testing.T) {
	dir := bare(t)
	for name, url := range urls(t, dir) {
		t.Run(name, func(t *testing.T) {
			r := open(t, dial(t, url, gitrepo.Auth{}), options(oneBranch))
			q := request(fetch(t, r), contract(name, "a", "1"))
			q.Market = tree.NewMemory().Build(map[string][]byte{"paris": []byte(name)})
			commit(t, r, q)
			gone, err := r.PruneMarket(t.Context(), noon.AddDate(0, 0, 1))
			if err != nil || len(gone) != 1 {
				t.Errorf("PruneMarket: got %v, %v", gone, err)
			}
			if refs := git(t, dir, "for-each-ref", "refs/fleetbroker/market"); refs != "" {
				t.Errorf("left: %s", refs)
			}
			git(t, dir, "update-ref", "refs/heads/main", "main^")
			gitPut(t, dir, "main", "intents/vision/"+name, "another history")
			var rewritten *gitrepo.ErrRewritten
			if _, err := r.Fetch(t.Context()); !errors.As(err, &rewritten) {
				t.Fatalf("Fetch: got %v, want ErrRewritten", err)
			}
			if err := r.AcceptRewrite(t.Context(), rewritten.New); err != nil {
				t.Fatalf("AcceptRewrite: %v", err)
			}
			for _, ref := range []string{"refs/fleetbroker/accepted/inputs", "refs/fleetbroker/accepted/ledger"} {
				if got := git(t, dir, "rev-parse", ref); got != rewritten.New.String() {
					t.Errorf("%s: got %s, want %s", ref, got, rewritten.New)
				}
			}
			commit(t, r, request(fetch(t, r), contract(name, "b", "1")))
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// A server that forbids force pushes and deletion means branches: the ledger
// and all that lies beside it go on, and only what is offered for review cannot
// be replaced, which is said with the remedy.
func TestServerThatForbidsForcePushes(t *testing.T) {
	dir := bare(t)
	git(t, dir, "config", "receive.denyNonFastForwards", "true")
	git(t, dir, "config", "receive.denyDeletes", "true")
	url := urls(t, dir)["http"]
	r := open(t, dial(t, url, gitrepo.Auth{}), options())
	for _, name := range []string{"a", "b"} {
		q := request(fetch(t, r), contract("vision", name, "1"))
		q.Market = tree.NewMemory().Build(map[string][]byte{"paris": []byte(name)})
		commit(t, r, q)
	}
	if gone, err := r.PruneMarket(t.Context(), noon.AddDate(0, 0, 1)); err != nil || len(gone) != 1 {
		t.Errorf("PruneMarket: got %v, %v", gone, err)
	}
	h := fetch(t, r)
	if _, err := r.Offer(t.Context(), request(h, contract("vision", "c", "1"))); err != nil {
		t.Errorf("the first offer: %v", err)
	}
	_, err := r.Offer(t.Context(), request(h, contract("vision", "c", "2")))
	var refused *gitrepo.ErrRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "non-fast-forward") || !strings.Contains(err.Error(), "receive.denyNonFastForwards") {
		t.Errorf("the second offer says %v", err)
	}
	if err := r.Withdraw(t.Context()); err == nil || !strings.Contains(err.Error(), "delete the branch "+gitrepo.OfferBranch) {
		t.Errorf("the withdrawal says %v", err)
	}
	git(t, dir, "config", "--unset", "receive.denyNonFastForwards")
	if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "c", "2"))); err != nil {
		t.Errorf("once it may: %v", err)
	}
}

// Where the refs beside the branches are forbidden, nothing lands, and the
// server's words and the account's right are named.
func TestServerThatProtectsRefsBesideBranches(t *testing.T) {
	dir := bare(t)
	hook(t, dir, "update", `case $1 in refs/fleetbroker/*) echo "$1 is protected" >&2; exit 1;; esac`)
	r := open(t, dial(t, urls(t, dir)["http"], gitrepo.Auth{}), options())
	_, err := r.Commit(t.Context(), request(fetch(t, r), contract("vision", "a", "1")))
	var refused *gitrepo.ErrRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "refs/fleetbroker/accepted/ledger is protected") || !strings.Contains(err.Error(), "allow this account") {
		t.Errorf("got %v", err)
	}
	if refs := git(t, dir, "for-each-ref", "refs/heads/ledger", "refs/fleetbroker"); refs != "" {
		t.Errorf("left: %s", refs)
	}
}
