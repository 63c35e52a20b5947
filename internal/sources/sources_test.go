package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/test/env"
)

type files = map[string]string

func TestKeeper_CopiesWhatTheEntryAllows(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	first := r.push("own", files{
		"intents/vision/a.yaml": "a: 1\n", "intents/vision/deep/b.yml": "b: 1\n", "intents/vision/README.md": "hello",
		"intents/other/evil.yaml": "evil", "fleet.yaml": "evil", "tenants/vision.yaml": "evil", "contracts/x.yaml": "evil",
	}, false)
	r.round()
	want := files{"intents/vision/a.yaml": "a: 1\n", "intents/vision/deep/b.yml": "b: 1\n"}
	if got := r.copied("own"); !maps.Equal(got, want) {
		t.Errorf("copied %q, want %q", got, want)
	}
	st := r.of("own")
	if st.Frozen != "" || st.Copied != first.String() || !slices.Equal(st.Ignored, []string{"intents/other", "intents/vision/README.md"}) {
		t.Errorf("status %+v", st)
	}
	if c := r.record("own"); c.Commit != first.String() || c.File("intents/vision/a.yaml").Author != "Ada <ada@example.org>" {
		t.Errorf("record %+v", c)
	}
	if at, why, err := sourced.Mismatch(r.ledger, r.record("own")); why != "" || err != nil {
		t.Errorf("%s: %s, %v", at, why, err)
	}

	// A commit that changes nothing of what is taken makes no copy; one that does says
	// who changed what.
	r.push("own", files{"README.md": "more"}, false)
	was := r.ledger.Root
	r.round()
	if r.ledger.Root != was {
		t.Error("a commit without intents changed the copy")
	}
	third := r.push("own", files{"intents/vision/a.yaml": "", "intents/vision/c.yaml": "c: 1\n"}, false)
	r.round()
	if got, want := r.copied("own"), (files{"intents/vision/deep/b.yml": "b: 1\n", "intents/vision/c.yaml": "c: 1\n"}); !maps.Equal(got, want) {
		t.Errorf("copied %q, want %q", got, want)
	}
	if c := r.record("own"); c.File("intents/vision/c.yaml").Commit != third.String() || c.File("intents/vision/deep/b.yml").Commit != first.String() {
		t.Errorf("record %+v", c)
	}
	r.round()
	if over, err := r.Over(r.ledger); err != nil || over.Root != r.ledger.Root {
		t.Errorf("a copy that is as it should be is laid over: %v", err)
	}

	// Without its entry the copy goes.
	r.policy.Sources = nil
	r.round()
	if got := r.copied("own"); len(got) > 0 {
		t.Errorf("copied %q, and no entry names it", got)
	}
}

// Whatever happens to one source, its copy stays in force, and others go on.
func TestKeeper_EachSourceFreezesAlone(t *testing.T) {
	big := strings.Repeat("x", v1alpha1.MaxSourceFile+1)
	for name, c := range map[string]struct {
		do   func(r *rig)
		want string
	}{
		"rewritten": {func(r *rig) { r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, true) }, "its history was rewritten"},
		"deleted": {func(r *rig) {
			if err := os.RemoveAll(filepath.Join(r.root, "own.git")); err != nil {
				r.t.Fatal(err)
			}
		}, "cannot read it"},
		"branch deleted": {func(r *rig) { r.git("own.git", "update-ref", "-d", "refs/heads/main") }, "it has no branch main"},
		"garbage": {func(r *rig) {
			if err := os.WriteFile(filepath.Join(r.root, "own.git", "HEAD"), []byte("garbage"), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}, "cannot read it"},
		"hangs": {func(r *rig) {
			r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
			r.push("fine", files{"intents/vision/b.yaml": "b: 1\n"}, false)
			r.hang.Store(true)
			r.opts.Idle = 2 * time.Second
		}, "no byte for 2s"},
		"a large file": {func(r *rig) { r.push("own", files{"intents/vision/a.yaml": big}, false) }, "intents/vision/a.yaml is larger than 1024 KiB"},
		"large together": {func(r *rig) {
			list := files{}
			for i := range 9 {
				list[fmt.Sprintf("intents/vision/%d.yaml", i)] = big[:v1alpha1.MaxSourceFile-i]
			}
			r.push("own", list, false)
		}, "more than 8 MiB together"},
		"too many files": {func(r *rig) {
			list := files{}
			for i := range v1alpha1.MaxSourceFiles + 1 {
				list[fmt.Sprintf("intents/vision/%d.yaml", i)] = "a: 1\n"
			}
			r.push("own", list, false)
		}, "more than 2000 files"},
		"a huge pack": {func(r *rig) {
			r.push("own", files{"data": strings.Repeat(big, 80)}, false)
		}, "it brings more than 64 MiB"},
		"two of one name":     {func(r *rig) { r.hostileTree("own", "100644 a.yaml", "100644 a.yaml") }, "is not read"},
		"a path outside":      {func(r *rig) { r.hostileTree("own", "100644 ..") }, "is not read"},
		"a path with a slash": {func(r *rig) { r.hostileTree("own", "100644 ../../other/evil.yaml") }, "is not read"},
		"git's own":           {func(r *rig) { r.hostileTree("own", "100644 .git") }, "is not read"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.source("own", "vision")
			r.source("fine", "vision")
			r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
			r.push("fine", files{"intents/vision/b.yaml": "b: 0\n"}, false)
			r.round()
			c.do(r)
			if name != "hangs" {
				r.push("fine", files{"intents/vision/b.yaml": "b: 1\n"}, false)
			}
			r.round()
			if got := r.copied("own"); !maps.Equal(got, files{"intents/vision/a.yaml": "a: 1\n"}) {
				t.Errorf("copied %.200q, want what stood before", got)
			}
			if st := r.of("own"); !strings.Contains(st.Frozen, c.want) || st.Since.IsZero() {
				t.Errorf("frozen for %q, want %q", st.Frozen, c.want)
			}
			if name == "hangs" { // the whole server
				return
			}
			if got := r.copied("fine"); got["intents/vision/b.yaml"] != "b: 1\n" || r.of("fine").Frozen != "" {
				t.Errorf("the other source: copied %q, %+v", got, r.of("fine"))
			}
		})
	}
}

// hostileTree pushes a tree whose intents/vision has some entries, as "mode name", that
// no git would make.
func (r *rig) hostileTree(name string, list ...string) {
	r.t.Helper()
	work := filepath.Join(r.root, name+".work")
	blob := r.git(name+".work", "rev-parse", "HEAD:intents/vision/a.yaml")
	raw, err := tree.ParseHash(blob)
	if err != nil {
		r.t.Fatal(err)
	}
	entries := ""
	for _, e := range list {
		entries += e + "\x00" + string(raw[:])
	}
	hash := func(content string) string {
		cmd := exec.Command("git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
		cmd.Dir, cmd.Stdin = work, strings.NewReader(content)
		out, err := cmd.Output()
		if err != nil {
			r.t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	sub := func(name, of string) string {
		h, err := tree.ParseHash(of)
		if err != nil {
			r.t.Fatal(err)
		}
		return "40000 " + name + "\x00" + string(h[:])
	}
	root := hash(sub("intents", hash(sub("vision", hash(entries)))))
	commit := r.git(name+".work", "commit-tree", root, "-p", "HEAD", "-m", "two of one name")
	r.git(name+".work", "push", "-q", "origin", commit+":main")
}

func TestKeeper_AcceptsARewriteOnce(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.round()
	head := r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, true)
	r.round()
	if st := r.of("own"); !strings.Contains(st.Frozen, "fleetbroker accept --source own="+head.String()) {
		t.Fatalf("frozen for %q, want the command that accepts it", st.Frozen)
	}
	// The operator's process, with a state of its own; another head is not accepted.
	for _, c := range []struct {
		accept tree.Hash
		want   string
	}{{tree.BlobHash(nil), "a: 1\n"}, {head, "a: 2\n"}} {
		accept, want := c.accept, c.want
		operator := r.another(func(o *Options) { o.Accept = map[string]tree.Hash{"own": accept} })
		operator.round()
		if got := operator.copied("own")["intents/vision/a.yaml"]; got != want {
			t.Errorf("accepting %s: copied %q, want %q", accept.Short(), got, want)
		}
		if accept == head {
			r.ledger = operator.ledger
		}
	}
	// The daemon goes on from what the ledger has now.
	r.push("own", files{"intents/vision/a.yaml": "a: 3\n"}, false)
	if err := r.Follow(&r.policy, r.ledger); err != nil {
		t.Fatal(err)
	}
	r.round()
	if got := r.copied("own")["intents/vision/a.yaml"]; got != "a: 3\n" || r.of("own").Frozen != "" {
		t.Errorf("copied %q, %+v", got, r.of("own"))
	}
}

// Links and submodules lead nowhere: they are not taken, whatever is called like an
// intent, and nothing on this machine is read for them.
func TestKeeper_LinksAreNotTaken(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	work := filepath.Join(r.root, "own.work", "intents", "vision")
	if err := errors.Join(os.WriteFile(outside, []byte("secret: 1\n"), 0o600), os.Symlink(outside, filepath.Join(work, "link.yaml")), os.Symlink(filepath.Dir(outside), filepath.Join(work, "dir")),
		os.Symlink("../other", filepath.Join(work, "other"))); err != nil {
		t.Fatal(err)
	}
	r.git("own.work", "update-index", "--add", "--cacheinfo", "160000,"+r.git("own.work", "rev-parse", "HEAD")+",intents/vision/sub.yaml")
	r.git("own.work", "add", "intents/vision/link.yaml", "intents/vision/dir", "intents/vision/other")
	r.git("own.work", "commit", "-q", "-m", "links")
	r.git("own.work", "push", "-q", "origin", "HEAD:main")
	r.round()
	if got := r.copied("own"); !maps.Equal(got, files{"intents/vision/a.yaml": "a: 1\n"}) {
		t.Errorf("copied %q", got)
	}
	if got, want := r.of("own").Ignored, []string{"intents/vision/dir", "intents/vision/link.yaml", "intents/vision/other", "intents/vision/sub.yaml"}; !slices.Equal(got, want) || r.of("own").Frozen != "" {
		t.Errorf("ignored %q, want %q; %+v", got, want, r.of("own"))
	}
}

// A replica that read less than what the ledger has does not go back.
func TestKeeper_NeverGoesBack(t *testing.T) {
	ahead := newRig(t, nil)
	ahead.source("own", "vision")
	ahead.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	behind := ahead.another(nil)
	behind.read() // has read the first commit, and committed nothing
	ahead.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
	ahead.round()
	over, err := behind.Over(ahead.ledger)
	if err != nil || over.Root != ahead.ledger.Root {
		t.Errorf("an older commit is laid over a newer copy: %v", err)
	}
}

func TestKeeper_WhereSourcesMayBe(t *testing.T) {
	r := newRig(t, nil)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("another host was asked")
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(elsewhere.Close)
	redirects := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		to := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
		http.Redirect(w, q, to+q.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(redirects.Close)
	host := strings.TrimPrefix(redirects.URL, "https://")
	r.opts.Hosts = append(r.opts.Hosts, host, "169.254.169.254", "metadata.test")
	for name, c := range map[string]struct{ url, want string }{
		"another host":    {"https://git.example.org/own.git", "host git.example.org is not allowed: an operator adds it to the daemon's --source-hosts"},
		"another port":    {"https://127.0.0.1:1/own.git", "host 127.0.0.1:1 is not allowed"},
		"file":            {"file://" + r.root + "/own.git", `scheme "file" is not allowed`},
		"a path":          {r.root + "/own.git", "is not a URL"},
		"http":            {strings.Replace(r.srv.URL, "https", "http", 1) + "/own.git", `scheme "http" is not allowed`},
		"link-local":      {"https://169.254.169.254/own.git", "link-local"},
		"redirected":      {redirects.URL + "/own.git", "redirected to https://localhost"},
		"ssh without key": {"ssh://git@" + host + "/own.git", "it has no ssh key"},
	} {
		t.Run(name, func(t *testing.T) {
			r.policy.Sources = nil
			e := r.entry("own")
			e.URL = c.url
			r.read()
			if st := r.of("own"); !strings.Contains(st.Frozen, c.want) {
				t.Errorf("frozen for %q, want %q", st.Frozen, c.want)
			}
		})
	}
}

// entry is that of a repository that need not be there.
func (r *rig) entry(name string) *v1alpha1.IntentSource {
	if _, err := os.Stat(filepath.Join(r.root, name+".git")); err != nil {
		return r.source(name, "vision")
	}
	r.policy.Sources = append(r.policy.Sources, v1alpha1.IntentSource{Name: name, URL: r.srv.URL + "/" + name + ".git", Tenants: []string{"vision"}})
	return &r.policy.Sources[len(r.policy.Sources)-1]
}

type secrets map[string]struct{ data, labels map[string]string }

func (s secrets) Secret(_ context.Context, name string) (map[string][]byte, map[string]string, error) {
	one, ok := s[name]
	if !ok {
		return nil, nil, errors.New("not found")
	}
	data := map[string][]byte{}
	for k, v := range one.data {
		data[k] = []byte(v)
	}
	return data, one.labels, nil
}

// A source's credentials are given to nobody else, whatever its entry names.
func TestKeeper_CredentialsOfTheirSourceAlone(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"own", "other"} {
		r.source(name, "vision")
		r.push(name, files{"intents/vision/" + name + ".yaml": "a: 1\n"}, false)
		if err := os.WriteFile(filepath.Join(r.root, name+".git", "password"), []byte("secret of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.credential("own", keyPassword, "secret of own")
	r.credential("own", keyUser, "bot")
	r.round()
	if st := r.of("own"); st.Frozen != "" {
		t.Errorf("own: %q", st.Frozen)
	}
	if st := r.of("other"); st.Frozen == "" {
		t.Error("a source without credentials was read")
	}
	ca, err := os.ReadFile(filepath.Join(r.creds, "own", keyCA))
	if err != nil {
		t.Fatal(err)
	}
	r.opts.Credentials.Secrets = secrets{
		"own-git":   {map[string]string{keyUser: "bot", keyPassword: "secret of own", keyCA: string(ca)}, map[string]string{v1alpha1.LabelSource: "own"}},
		"other-git": {map[string]string{keyUser: "bot", keyPassword: "secret of other", keyCA: string(ca)}, map[string]string{v1alpha1.LabelSource: "other"}},
		"unrelated": {map[string]string{keyPassword: "secret of other", keyCA: string(ca)}, nil},
	}
	for _, c := range []struct{ secret, want string }{
		{"own-git", "Secret own-git is not meant for this source: label it fleetbroker.io/source=other"},
		{"unrelated", "Secret unrelated is not meant for this source"},
		{"missing", "read Secret missing: not found"},
		{"other-git", ""},
	} {
		r.policy.Source("other").CredentialsRef = &v1alpha1.SourceCredentialsRef{Name: c.secret}
		r.round()
		if st := r.of("other"); !strings.Contains(st.Frozen, c.want) || c.want == "" && st.Frozen != "" {
			t.Errorf("Secret %s: frozen for %q, want %q", c.secret, st.Frozen, c.want)
		}
	}
	if log := r.log.String(); strings.Contains(log, "secret of") {
		t.Errorf("the log shows a password:\n%s", log)
	}
}

func TestKeeper_Signers(t *testing.T) {
	r := newRig(t, nil)
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada@example.org", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	sign := []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "-c", "commit.gpgsign=true"}
	r.source("own", "vision").Signers = []v1alpha1.Signer{{Principal: "ada@example.org", PublicKey: string(public)}}
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false, sign...)
	r.round()
	if c := r.record("own"); c == nil || c.Signer != "ada@example.org" {
		t.Fatalf("record %+v, %+v", c, r.of("own"))
	}
	r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
	r.round()
	if st := r.of("own"); r.copied("own")["intents/vision/a.yaml"] != "a: 1\n" || !strings.Contains(st.Frozen, "is not signed by one of its signers") {
		t.Errorf("an unsigned head: copied %q, frozen for %q", r.copied("own"), st.Frozen)
	}
	r.push("own", files{}, false, sign...) // what it stands on is signed for, too
	r.round()
	if got := r.copied("own")["intents/vision/a.yaml"]; got != "a: 2\n" {
		t.Errorf("copied %q; frozen for %q", got, r.of("own").Frozen)
	}

	r.source("open", "vision")
	r.push("open", files{"intents/vision/b.yaml": "b: 1\n"}, false)
	r.policy.Verification.Intents = "signed"
	r.round()
	if st := r.of("open"); !strings.Contains(st.Frozen, "names no signers") {
		t.Errorf("intents must be signed, and a source without signers: frozen for %q", st.Frozen)
	}
}

// Fifty sources at once cost a bounded time and memory, though one hangs, one was
// rewritten, one is huge and one is not signed: each of those is frozen alone, and the
// others do not wait for it.
func TestKeeper_FiftySources(t *testing.T) {
	r := newRig(t, nil)
	const n = 50
	for i := range n {
		name := fmt.Sprintf("s%02d", i)
		r.source(name, "vision")
		r.push(name, files{"intents/vision/" + name + ".yaml": strings.Repeat("# x\n", 1000)}, false)
	}
	r.round() // the rewritten one has to have been acted on
	stuck := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	}))
	t.Cleanup(stuck.Close)
	r.push("s01", files{"intents/vision/s01.yaml": "# rewritten\n"}, true)
	huge := files{}
	for i := range 6 { // what does not compress: beyond 64 MiB in a fetch
		b := make([]byte, 12<<20)
		if _, err := rand.Read(b); err != nil {
			t.Fatal(err)
		}
		huge[fmt.Sprintf("weights/%d.bin", i)] = string(b)
	}
	r.push("s02", huge, false)
	r.policy.Source("s03").Signers = []v1alpha1.Signer{{Principal: "ada@example.org", PublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJt6Wj0B0rNZ4TiNi1sLKaQ0kD7d6qo8fZqTvJ0d0bYt"}}
	troubled := map[string]string{"s01": "its history was rewritten", "s02": "it brings more than 64 MiB", "s03": "is not signed by one of its signers"}
	for i := 4; i < n; i++ {
		name := fmt.Sprintf("s%02d", i)
		r.push(name, files{"intents/vision/" + name + ".yaml": strings.Repeat("# y\n", 1000)}, false)
	}
	daemon := r.another(func(o *Options) { o.Hosts = append(o.Hosts, strings.TrimPrefix(stuck.URL, "https://")) })
	daemon.policy.Source("s00").URL = stuck.URL + "/s00.git"
	if err := daemon.Follow(&daemon.policy, daemon.ledger); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := watchHeap(t, before.HeapAlloc)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		daemon.Run(ctx)
		close(done)
	}()
	defer func() {
		cancel()
		<-done
	}()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for read := 0; read < n-4; {
		select {
		case <-deadline:
			t.Fatalf("%d of %d sources were read within a minute: %+v", read, n-4, daemon.Status())
		case <-tick.C:
		}
		read = 0
		for _, st := range daemon.Status()[4:] {
			if st.Head != "" && st.Frozen == "" {
				read++
			}
		}
	}
	took := time.Since(start)
	for name, want := range troubled {
		for end := time.Now().Add(time.Minute); !strings.Contains(daemon.of(name).Frozen, want); <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("%s: frozen for %q, want %q", name, daemon.of(name).Frozen, want)
			}
		}
	}
	peak := most()
	over, err := daemon.Over(daemon.ledger)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	daemon.ledger = over
	for i := range n {
		want := strings.Repeat("# y\n", 1000)
		name := fmt.Sprintf("s%02d", i)
		if i < 4 {
			want = strings.Repeat("# x\n", 1000) // what stood before
		}
		if i == 0 {
			continue // its entry has another URL: what was copied by the former stays until the new one answers
		}
		if got := daemon.copied(name)["intents/vision/"+name+".yaml"]; got != want {
			t.Errorf("%s: copied %.20q, want %.20q", name, got, want)
		}
	}
	live := int64(after.HeapAlloc) - int64(before.HeapAlloc) //nolint:gosec // both are small
	t.Logf("%d sources in %s beside four in trouble, %d KiB live, at most %d MiB on the way", n-4, took.Round(time.Millisecond), live>>10, peak>>20)
	if live > 64<<20 {
		t.Errorf("%d MiB are kept, want at most 64", live>>20)
	}
	if most := int64(2*(maxInflated+maxReceived) + 64<<20); peak > most {
		t.Errorf("%d MiB were in use at a time, want at most %d", peak>>20, most>>20)
	}
}

// watchHeap returns what the heap has had above a level at most, in bytes.
func watchHeap(t *testing.T, level uint64) func() int64 {
	t.Helper()
	stop, done, peak := make(chan struct{}), make(chan struct{}), int64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, int64(m.HeapAlloc)-int64(level)) //nolint:gosec // both are small
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return peak
	}
}

// Over ssh a source is read with its own key, and not with the daemon's agent.
func TestKeeper_SSH(t *testing.T) {
	r := newRig(t, nil)
	keys := t.TempDir()
	srv, err := env.StartSSH(t.Context(), r.root, keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	})
	e := r.source("own", "vision")
	e.URL = srv.URL("own.git")
	at, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.opts.Hosts = []string{at.Host}
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	t.Setenv("SSH_AUTH_SOCK", "/nowhere")
	r.round()
	if st := r.of("own"); !strings.Contains(st.Frozen, "it has no ssh key") {
		t.Errorf("frozen for %q", st.Frozen)
	}
	for key, file := range map[string]string{keySSH: srv.ClientKeyFile, keyKnownHosts: srv.KnownHostFile} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r.credential("own", key, string(b))
	}
	r.round()
	if got := r.copied("own")["intents/vision/a.yaml"]; got != "a: 1\n" {
		t.Errorf("copied %q; frozen for %q", got, r.of("own").Frozen)
	}
}

// A source whose entry went is forgotten once nobody reads it, however often fleet.yaml
// names others; who still reads it keeps others from its mirror.
func TestKeeper_ForgetsFormerEntries(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	entry := r.policy.Sources[0]
	follow := func(names ...string) {
		t.Helper()
		r.policy.Sources = nil
		for _, name := range names {
			e := entry
			e.Name = name
			r.policy.Sources = append(r.policy.Sources, e)
		}
		if err := r.Follow(&r.policy, r.ledger); err != nil {
			t.Fatal(err)
		}
	}
	known := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.all)
	}
	for i := range 100 {
		follow("own", fmt.Sprintf("former-%d", i))
	}
	if got := known(); got != 2 {
		t.Errorf("%d sources are known of two", got)
	}
	follow("own")
	r.hang.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	until := func(what string, is func() bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(20 * time.Second); !is(); <-tick.C {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	asked := r.asked.Load()
	until("it is not read", func() bool { return r.asked.Load() > asked+1 })
	r.mu.Lock()
	reading := r.all["own"]
	r.mu.Unlock()
	follow()
	follow("own") // before its reader has ended
	r.mu.Lock()
	again := r.all["own"]
	r.mu.Unlock()
	if again != reading {
		t.Error("two may read into one mirror")
	}
	follow()
	until("it is not forgotten", func() bool { return known() == 0 })
	cancel()
	<-ended
}
