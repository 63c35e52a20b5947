package sources

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// rig is a git server over TLS with one bare repository a source, and a Keeper.
type rig struct {
	*Keeper
	t       testing.TB
	root    string
	srv     *httptest.Server
	creds   string
	log     bytes.Buffer
	hang    atomic.Bool // the server stops within a pack
	changed atomic.Int32
	asked   atomic.Int32 // requests
	policy  v1alpha1.FleetSpec
	ledger  tree.Tree
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, root: t.TempDir(), creds: t.TempDir()}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	r.srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		if r.hang.Load() && strings.HasSuffix(q.URL.Path, "git-upload-pack") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			_, _ = w.Write([]byte("0008NAK\n"))
			w.(http.Flusher).Flush()
			<-q.Context().Done()
			return
		}
		name := strings.Split(q.URL.Path, "/")[1]
		if want, err := os.ReadFile(filepath.Join(r.root, name, "password")); err == nil {
			if _, has, _ := q.BasicAuth(); has != string(want) {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you", http.StatusUnauthorized)
				return
			}
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(r.srv.Close)
	at, err := url.Parse(r.srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{
		Dir: t.TempDir(), Hosts: []string{at.Host}, Credentials: Credentials{Dir: r.creds}, Every: time.Hour,
		Changed: func() { r.changed.Add(1) }, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	if change != nil {
		change(&opts)
	}
	if r.Keeper, err = New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// another is a Keeper of its own on the same repositories and ledger.
func (r *rig) another(change func(*Options)) *rig {
	r.t.Helper()
	out := &rig{t: r.t, root: r.root, srv: r.srv, creds: r.creds, policy: r.policy, ledger: r.ledger}
	opts := r.opts
	opts.Dir = r.t.TempDir()
	if change != nil {
		change(&opts)
	}
	var err error
	if out.Keeper, err = New(opts); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// source makes a repository, with its entry and the server's certificate for it.
func (r *rig) source(name string, tenants ...string) *v1alpha1.IntentSource {
	r.t.Helper()
	r.git("", "init", "-q", "--bare", "-b", "main", name+".git")
	r.git(name+".git", "config", "core.compression", "0") // what is large is to be sent at once, on a busy machine too
	r.git(name+".git", "config", "core.bigFileThreshold", "1m")
	r.credential(name, keyCA, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.srv.Certificate().Raw})))
	r.policy.Sources = append(r.policy.Sources, v1alpha1.IntentSource{Name: name, URL: r.srv.URL + "/" + name + ".git", Tenants: tenants})
	return &r.policy.Sources[len(r.policy.Sources)-1]
}

func (r *rig) credential(source, key, value string) {
	r.t.Helper()
	dir := filepath.Join(r.creds, source)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// git runs git in a directory of the root.
func (r *rig) git(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.compression=0", "-c", "core.bigFileThreshold=1m"}, args...)...)
	cmd.Dir = filepath.Join(r.root, dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits files to a source ("" deletes one) and returns the commit. fresh: on no
// parent, by force.
func (r *rig) push(name string, files map[string]string, fresh bool, with ...string) tree.Hash {
	r.t.Helper()
	work := name + ".work"
	if fresh {
		if err := os.RemoveAll(filepath.Join(r.root, work)); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.root, work)); err != nil {
		r.git("", "init", "-q", "-b", "main", work)
		r.git(work, "remote", "add", "origin", filepath.Join(r.root, name+".git"))
	}
	for p, content := range files {
		full := filepath.Join(r.root, work, p)
		if content == "" {
			if err := os.RemoveAll(full); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o750); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git(work, "add", "-A")
	r.git(work, append(append([]string{}, with...), "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("change %d files", len(files)))...)
	r.git(work, "push", "-q", "--force", "origin", "HEAD:main")
	h, err := tree.ParseHash(r.git(work, "rev-parse", "HEAD"))
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// read follows the policy, reads every source, and lays the copies over the ledger.
func (r *rig) read() tree.Tree {
	r.t.Helper()
	if err := r.Follow(&r.policy, r.ledger); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	r.ReadAll(ctx)
	over, err := r.Over(r.ledger)
	if err != nil {
		r.t.Fatal(err)
	}
	return over
}

// round reads, and commits what is to be copied.
func (r *rig) round() {
	r.t.Helper()
	r.ledger = r.read()
	if err := r.Follow(&r.policy, r.ledger); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) of(name string) Status {
	r.t.Helper()
	for _, st := range r.Status() {
		if st.Name == name {
			return st
		}
	}
	r.t.Fatalf("no status of source %s", name)
	return Status{}
}

// copied is what a ledger has of a source, by path in it.
func (r *rig) copied(name string) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	sub, err := r.ledger.Sub(sourced.Dir(name))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := sub.Walk(func(p string, e tree.Entry) error {
		b, err := sub.Store.File(e.Hash, 0)
		if p != v1alpha1.SourceFile {
			out[p] = string(b)
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) record(name string) *v1alpha1.SourceCopy {
	r.t.Helper()
	c, err := sourced.Record(r.ledger, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}
