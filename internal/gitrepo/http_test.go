package gitrepo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// httpHandler demands basic authentication when a user and password are given.
func httpHandler(h http.Handler, auth []string) http.Handler {
	if len(auth) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != auth[0] || password != auth[1] {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func secretFile(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestHTTP(t *testing.T) {
	dir := bare(t)
	srv := serveGit(t, filepath.Dir(dir), "bot", "s3cret")
	file := secretFile(t, "s3cret")
	r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{User: "bot", PasswordFile: file}), options())
	h := fetch(t, r)
	for i, name := range []string{"a", "b", "c"} {
		res := commit(t, r, request(h, contract("vision", name, "x")))
		if got := git(t, dir, "rev-parse", "ledger"); got != res.Head().String() {
			t.Fatalf("commit %d: ledger is at %s, want %s", i, got, res.Head())
		}
		h = fetch(t, r)
	}
	git(t, dir, "fsck", "--strict", "--no-dangling")

	// The password is read at each connection: a rotated one works at once.
	if err := os.WriteFile(file, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.Fetch(t.Context())
	if err == nil {
		t.Fatal("Fetch with a wrong password succeeded")
	}
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestBearerTokenFromTheEnvironment(t *testing.T) {
	t.Setenv("FLEET_TOKEN", "t0ken")
	dir := bare(t)
	backend := serveGit(t, filepath.Dir(dir))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		backend.Config.Handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{BearerEnv: "FLEET_TOKEN"}), options())
	if h := fetch(t, r); h.Inputs.Commit.IsZero() {
		t.Error("nothing fetched")
	}
}

func TestRedirectsDoNotCarryCredentials(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer srv.Close()
	remote := dial(t, srv.URL+"/fleet.git", gitrepo.Auth{User: "bot", PasswordFile: secretFile(t, "s3cret")})
	if _, err := remote.Refs(t.Context()); err == nil {
		t.Error("Refs succeeded without credentials")
	}
	if err := remote.Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/x"}}, nil); err == nil {
		t.Error("Push succeeded without credentials")
	}
	if leaked.Load() {
		t.Error("the credentials went to another host")
	}
}

// A repository that moved within its server works through the old URL, without
// a failed push each time.
func TestRedirectWithinTheServer(t *testing.T) {
	dir := bare(t)
	backend := serveGit(t, filepath.Dir(dir), "bot", "s3cret")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, old := strings.CutPrefix(r.URL.Path, "/old.git/"); old {
			http.Redirect(w, r, "/fleet.git/"+path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		backend.Config.Handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	slept := 0
	auth := gitrepo.Auth{User: "bot", PasswordFile: secretFile(t, "s3cret")}
	r := open(t, dial(t, srv.URL+"/old.git", auth), options(func(o *gitrepo.Options) {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { slept++; return ctx.Err() }
	}))
	for _, name := range []string{"a", "b", "c"} {
		commit(t, r, request(fetch(t, r), contract("vision", name, "1")))
	}
	if slept != 0 {
		t.Errorf("waited %d times to push again", slept)
	}
}

func TestDialRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		url  string
		auth gitrepo.Auth
		want string
	}{
		"password in the URL":    {url: "https://bot:hunter2@example.org/x.git", want: "the URL holds a password"},
		"token as the user":      {url: "https://hunter2@example.org/x.git", want: "without a password"},
		"a scheme without locks": {url: "git://example.org/x.git", want: "not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gitrepo.Dial(c.url, c.auth)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}
