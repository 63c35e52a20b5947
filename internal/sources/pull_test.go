package sources

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// propose puts a commit on top of a source's main at the head of a pull request.
func (r *rig) propose(name, ref string, change func(work string), with ...string) tree.Hash {
	r.t.Helper()
	work := name + ".pull"
	if err := os.RemoveAll(filepath.Join(r.root, work)); err != nil {
		r.t.Fatal(err)
	}
	r.git("", "clone", "-q", name+".git", work)
	change(filepath.Join(r.root, work))
	r.git(work, "add", "-A")
	r.git(work, append(append([]string{}, with...), "commit", "-q", "--allow-empty", "-m", "Ask")...)
	r.git(work, "push", "-q", "--force", "origin", "HEAD:"+ref)
	h, err := tree.ParseHash(r.git(work, "rev-parse", "HEAD"))
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// writing writes a file of a checkout.
func (r *rig) writing(name, content string) func(work string) {
	return func(work string) {
		r.t.Helper()
		full := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o750), os.WriteFile(full, []byte(content), 0o600)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestPull_TakesWhatTheEntryAllows(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	if _, err := r.Pull(t.Context(), "own", "refs/pull/1/head", gitrepo.ForkBounds); !errors.Is(err, ErrNotCopied) {
		t.Errorf("before anything is copied: %v", err)
	}
	acted := r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.round()
	head := r.propose("own", "refs/pull/1/head", func(work string) {
		r.writing("intents/vision/b.yaml", "b: 1\n")(work)
		r.writing("intents/other/evil.yaml", "evil: 1\n")(work)
		r.writing("fleet.yaml", "evil: 1\n")(work)
		if err := os.Symlink("/etc/passwd", filepath.Join(work, "intents/vision/link.yaml")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../..", filepath.Join(work, "intents/vision/up")); err != nil {
			t.Fatal(err)
		}
	})
	packs := func() int {
		list, err := filepath.Glob(filepath.Join(r.dir, "own-*", "*", "*.pack"))
		more, err2 := filepath.Glob(filepath.Join(r.dir, "own-*", "*.pack"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return len(list) + len(more)
	}
	before := packs()
	p, err := r.Pull(t.Context(), "own", "refs/pull/1/head", gitrepo.ForkBounds)
	if err != nil {
		t.Fatal(err)
	}
	if p.Commit != head || p.Acted != acted || p.Base != acted || p.Refused != "" || p.Signed || p.Unsigned != "" {
		t.Errorf("got %+v", p)
	}
	if got, want := slices.Sorted(maps.Keys(p.Files)), []string{"intents/vision/a.yaml", "intents/vision/b.yaml"}; !slices.Equal(got, want) {
		t.Errorf("took %q, want %q", got, want)
	}
	if got, want := p.Ignored, []string{"intents/other", "intents/vision/link.yaml", "intents/vision/up"}; !slices.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
	if len(p.BaseFiles) != 1 {
		t.Errorf("the base has %d files", len(p.BaseFiles))
	}
	if before == 0 || packs() != before {
		t.Errorf("%d packs before, %d after: a pull request is kept", before, packs())
	}
	if got := r.copied("own"); len(got) != 1 {
		t.Errorf("a proposal was copied: %v", got)
	}
	if _, err := r.Pull(t.Context(), "own", "refs/pull/2/head", gitrepo.ForkBounds); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a ref that is not there: %v", err)
	}
}

func TestPull_RefusesWhatIsTooMuchOrBroken(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.round()
	for name, c := range map[string]struct {
		change func(string)
		want   string
	}{
		"a pack": {r.writing("large.bin", strings.Repeat("0123456789abcdef", 9<<16)), "it brings more than 8 MiB"},
		"a file": {r.writing("intents/vision/l.yaml", "# "+strings.Repeat("x", v1alpha1.MaxSourceFile)), "is larger than 1024 KiB"},
		"no directory": {func(work string) {
			if err := errors.Join(os.RemoveAll(filepath.Join(work, "intents")), os.Symlink("/etc", filepath.Join(work, "intents"))); err != nil {
				t.Fatal(err)
			}
		}, "intents is no directory"},
	} {
		t.Run(name, func(t *testing.T) {
			head := r.propose("own", "refs/pull/1/head", c.change)
			p, err := r.Pull(t.Context(), "own", "refs/pull/1/head", gitrepo.ForkBounds)
			if err != nil {
				t.Fatal(err)
			}
			if p.Commit != head || !strings.Contains(p.Refused, c.want) || p.Files != nil {
				t.Errorf("got %s refused for %q, want %q", p.Commit.Short(), p.Refused, c.want)
			}
		})
	}
	// It can be read afterwards as before, and so can the source.
	r.propose("own", "refs/pull/1/head", r.writing("intents/vision/b.yaml", "b: 1\n"))
	if p, err := r.Pull(t.Context(), "own", "refs/pull/1/head", gitrepo.ForkBounds); err != nil || len(p.Files) != 2 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestForge_IsHeldToTheHostsAndTheSourcesToken(t *testing.T) {
	r := newRig(t, nil)
	host := r.opts.Hosts[0]
	r.source("own", "vision").Forge = &v1alpha1.SourceForge{Type: "gitea", Repository: "own/gpus"}
	r.source("other", "vision").Forge = &v1alpha1.SourceForge{Type: "gitea", Repository: "other/gpus"}
	r.source("none", "vision")
	r.credential("own", keyForge, "token of own\n")
	r.credential("own", keyHook, "hook of own\n")
	follow := func() {
		t.Helper()
		if err := r.Follow(&r.policy, r.ledger); err != nil {
			t.Fatal(err)
		}
	}
	follow()
	if _, ok, err := r.Forge("none"); ok || err != nil {
		t.Errorf("a source without a forge has one: %v", err)
	}
	if _, _, err := r.Forge("other"); err == nil || !strings.Contains(err.Error(), "forge-token") {
		t.Errorf("a source without a token: %v", err)
	}
	r.credential("own", keyForge, "token-of-own")
	config, ok, err := r.Forge("own")
	if err != nil || !ok || config.URL != "https://"+host || config.Repo != "own/gpus" {
		t.Fatalf("got %+v, %v", config, err)
	}
	if token, err := config.Token(); err != nil || token != "token-of-own" {
		t.Errorf("token %q, %v", token, err)
	}
	if err := config.Guard(netip.MustParseAddr("169.254.169.254")); err == nil {
		t.Error("a link-local address is not refused")
	}
	// The client asks the guard what a name leads to, and takes no token to another host.
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/redirect" {
			http.Redirect(w, q, strings.Replace(r.srv.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
			return
		}
		t.Errorf("asked for %s", q.URL)
	}))
	t.Cleanup(elsewhere.Close)
	guarded := config
	guarded.URL, guarded.Limits.Tries = elsewhere.URL, 1
	ask := func(path string) error {
		client, err := guarded.Client(func(h http.Header, token string) { h.Set("X-Token", token) })
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		answer, err := client.Get(elsewhere.URL + path)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	if err := ask("/redirect"); err == nil || !strings.Contains(err.Error(), "where its token may not go") {
		t.Errorf("redirected: %v", err)
	}
	guarded.Guard = func(ip netip.Addr) error { return errors.New("not " + ip.String()) }
	if err := ask("/"); err == nil || !strings.Contains(err.Error(), "not 127.0.0.1") {
		t.Errorf("a refused address: %v", err)
	}
	for url, want := range map[string]string{
		"https://169.254.169.254/api": "link-local", "https://forge.example.org": "host forge.example.org is not allowed", "http://" + host: "it is no https URL", "https://me:secret@" + host: "it holds credentials",
	} {
		r.policy.Source("own").Forge = &v1alpha1.SourceForge{Type: "gitea", URL: url, Repository: "own/gpus"}
		follow()
		if _, _, err := r.Forge("own"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}

	// Webhooks are held to the secret that was read with the source.
	if _, secret := r.Hook("own"); secret != nil {
		t.Error("a secret is known before the source was read")
	}
	r.round()
	if kind, secret := r.Hook("own"); kind != "gitea" || string(secret) != "hook of own" {
		t.Errorf("got %s %q", kind, secret)
	}
	if kind, secret := r.Hook("other"); kind != "" || secret != nil {
		t.Errorf("another source's: %s %q", kind, secret)
	}
	r.policy.Sources = slices.DeleteFunc(r.policy.Sources, func(e v1alpha1.IntentSource) bool { return e.Name == "own" })
	follow()
	if _, secret := r.Hook("own"); secret != nil {
		t.Error("a source that is gone still takes webhooks")
	}
}

// A webhook leads to a read as soon as the source may be read again, and not before.
func TestWake_LeadsToARead(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Every = 300 * time.Millisecond })
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	if err := r.Follow(&r.policy, r.ledger); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(done)
	}()
	defer func() {
		cancel()
		<-done
	}()
	wait := func(what string, is func() bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); !is(); <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	wait("read", func() bool { return r.of("own").Head != "" })
	second := r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
	reads := r.asked.Load()
	for range 100 {
		r.Wake("own")
	}
	r.Wake("unknown")
	wait("read again", func() bool { return r.of("own").Head == second.String() })
	if n := r.asked.Load() - reads; n > 6 { // a read is two requests, and one may have been under way
		t.Errorf("100 webhooks at once led to %d requests", n)
	}
}

// What is made of Status is made again when it says something else, and not with each read.
func TestVersion_GrowsWithWhatIsSaid(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.source("empty", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	last := r.Version()
	for i, step := range []struct {
		do   func()
		more bool
	}{
		{func() {}, true},
		{func() {}, false},
		{func() { r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false) }, true},
		{func() {}, false},
		{func() { r.push("own", files{"intents/vision/a.yaml": "a: 3\n"}, true) }, true}, // rewritten
		{func() {}, false},
	} {
		step.do()
		r.round()
		now := r.Version()
		if more := now > last; more != step.more {
			t.Errorf("step %d: from %d to %d; %+v", i, last, now, r.Status())
		}
		last = now
	}
}

// Mirrors of former entries are deleted, and nothing else, wherever links lead.
func TestSweep_DeletesWhatNoEntryNames(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"own", "former"} {
		r.source(name, "vision")
		r.push(name, files{"intents/vision/" + name + ".yaml": "a: 1\n"}, false)
	}
	r.credential("former", keyKnownHosts, "host key\n")
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.Symlink(outside, filepath.Join(r.dir, "link-0123456789abcdef")), os.Mkdir(filepath.Join(r.dir, "somebody-elses"), 0o700)); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	if got := dir(t, r.dir); !slices.Contains(got, "link-0123456789abcdef") {
		t.Error("deleted before the fleet was read")
	}
	r.round()
	r.sweep()
	own, former := filepath.Base(r.mirrorOf(r.Entry("own"))), filepath.Base(r.mirrorOf(r.Entry("former")))
	if got, want := dir(t, r.dir), []string{former, former + ".known_hosts", own, "somebody-elses"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	r.policy.Sources = r.policy.Sources[:1]
	r.round()
	r.sweep()
	if got, want := dir(t, r.dir), []string{own, "somebody-elses"}; !slices.Equal(got, want) {
		t.Errorf("after the entry was taken out %q are left, want %q", got, want)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if got := r.copied("own"); len(got) != 1 {
		t.Errorf("the other source: %v", got)
	}
}

func dir(t *testing.T, name string) []string {
	t.Helper()
	list, err := os.ReadDir(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
