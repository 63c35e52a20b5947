package gitrepo_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// demanding is a git server that refuses whoever does not ask for multi_ack, as Azure DevOps
// does. Without detailed it advertises multi_ack alone.
func demanding(t *testing.T, backend http.Handler, detailed bool, asked *atomic.Int32) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			first, _, _ := bytes.Cut(body, []byte("\n"))
			if !bytes.Contains(first, []byte(" multi_ack")) {
				http.Error(w, "TF401041: the client must support multi_ack", http.StatusBadRequest)
				return
			}
			if bytes.Contains(first, []byte("multi_ack_detailed")) != detailed {
				t.Errorf("asked by %q, and multi_ack_detailed is advertised: %t", first, detailed)
			}
			asked.Add(int32(bytes.Count(body, []byte("have ")))) //nolint:gosec // a few
			r.Body = io.NopCloser(bytes.NewReader(body))
			backend.ServeHTTP(w, r)
		case !detailed && strings.HasSuffix(r.URL.Path, "/info/refs"):
			rec := httptest.NewRecorder()
			backend.ServeHTTP(rec, r)
			for name, values := range rec.Header() {
				w.Header()[name] = values
			}
			_, _ = w.Write(bytes.ReplaceAll(rec.Body.Bytes(), []byte("multi_ack_detailed"), []byte("none_such_detailed")))
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// Clone, fetches on top of many commits in common, and pushes go through where multi_ack is
// demanded.
func TestServerThatDemandsMultiACK(t *testing.T) {
	for _, detailed := range []bool{true, false} {
		t.Run(fmt.Sprintf("detailed %t", detailed), func(t *testing.T) {
			dir := bare(t)
			var haves atomic.Int32
			srv := demanding(t, serveGit(t, filepath.Dir(dir)).Config.Handler, detailed, &haves)
			r := open(t, dial(t, srv.URL+"/fleet.git", gitrepo.Auth{}), options())
			h := fetch(t, r)
			for i := range 20 {
				commit(t, r, request(h, contract("vision", fmt.Sprintf("c%d", i), "x")))
				h = fetch(t, r)
			}
			clone := filepath.Join(t.TempDir(), "clone")
			git(t, filepath.Dir(dir), "clone", "-q", dir, clone)
			for i := range 3 {
				git(t, clone, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("Inputs %d", i))
				git(t, clone, "push", "-q", "origin", "HEAD:main")
				before := haves.Load()
				h = fetch(t, r)
				if got, want := h.Inputs.Commit.Hash.String(), git(t, clone, "rev-parse", "HEAD"); got != want {
					t.Fatalf("fetched %s, want %s", got, want)
				}
				if haves.Load()-before < 2 {
					t.Errorf("%d commits were named as known: the fetch was none on top of others", haves.Load()-before)
				}
			}
			res := commit(t, r, request(h, contract("vision", "last", "x")))
			if got := git(t, dir, "rev-parse", "ledger"); got != res.Head().String() {
				t.Errorf("ledger: got %s, want %s", got, res.Head())
			}
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}
