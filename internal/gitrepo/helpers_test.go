package gitrepo_test

import (
	"context"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// noon is the clock of tests that need none.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func person(name string) gitobj.Person {
	return gitobj.Person{Name: name, Email: strings.ToLower(name) + "@example.org", When: noon}
}

// options are those of a daemon whose clock stands still and whose pauses take
// no time.
func options(mod ...func(*gitrepo.Options)) gitrepo.Options {
	o := gitrepo.Options{
		Inputs: "main", Ledger: "ledger",
		Identity: gitrepo.Identity{Name: "fleetbroker", Email: "fleetbroker@example.org"},
		Now:      func() time.Time { return noon },
		Sleep:    func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Rand:     func() float64 { return 0.5 },
	}
	for _, m := range mod {
		m(&o)
	}
	return o
}

func oneBranch(o *gitrepo.Options) { o.Ledger = "main" }

func open(t testing.TB, remote gitrepo.Remote, opts gitrepo.Options) *gitrepo.Repo {
	t.Helper()
	r, err := gitrepo.Open(t.Context(), remote, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

func fetch(t testing.TB, r *gitrepo.Repo) gitrepo.Heads {
	t.Helper()
	h, err := r.Fetch(t.Context())
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	return h
}

// contract is an item that writes one contract of a tenant.
func contract(tenant, name, content string) gitrepo.Item {
	return gitrepo.Item{
		Key:      tenant + "/" + name,
		Puts:     map[string][]byte{"contracts/" + tenant + "/aa/" + name + ".yaml": []byte(content)},
		Line:     "place " + tenant + "/" + name + " on paris/h100",
		Trailers: []string{"Contract: " + name + " - -> Reserved"},
	}
}

// request commits items on what heads show.
func request(h gitrepo.Heads, items ...gitrepo.Item) gitrepo.Request {
	return gitrepo.Request{
		Base: h.Ledger.Commit.Hash, Inputs: h.Inputs.Commit.Hash, Items: items,
		Trailers: []string{"Inputs: " + h.Inputs.Commit.Hash.String(), "Plan: sha256:00"},
		When:     noon,
	}
}

// independent is a request whose items depend on no other contract.
func independent(h gitrepo.Heads, items ...gitrepo.Item) gitrepo.Request {
	q := request(h, items...)
	q.Reads = []string{}
	return q
}

func commit(t testing.TB, r *gitrepo.Repo, q gitrepo.Request) gitrepo.Result {
	t.Helper()
	res, err := r.Commit(t.Context(), q)
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return res
}

// seeded is a memory remote with one intent on main.
func seeded(t testing.TB) *memremote.Remote {
	t.Helper()
	m := memremote.New()
	team(t, m, "intents/vision/a.yaml", "kind: ResourceIntent\n")
	return m
}

// team commits one input file to main.
func team(t testing.TB, m *memremote.Remote, path, content string) tree.Hash {
	t.Helper()
	h, err := m.Commit("main", person("Ada"), "edit "+path+"\n", gitobj.Change{Puts: map[string][]byte{path: []byte(content)}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// git runs git, without the user's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := gitCmd(dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitCmd(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"GIT_AUTHOR_DATE="+noon.Format(time.RFC3339), "GIT_COMMITTER_DATE="+noon.Format(time.RFC3339))
	return cmd
}

// bare makes a bare repository with one commit on main.
func bare(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet.git")
	git(t, ".", "init", "-q", "--bare", "-b", "main", dir)
	gitPut(t, dir, "main", "intents/vision/a.yaml", "kind: ResourceIntent\n")
	return dir
}

// gitPut commits one file to a branch of a bare repository, as a team's merge
// would, with the real git.
func gitPut(t testing.TB, dir, branch, path, content string) string {
	t.Helper()
	index := filepath.Join(t.TempDir(), "index")
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := gitCmd(dir, args...)
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+index)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	ref := "refs/heads/" + branch
	var parent []string
	if old, err := gitCmd(dir, "rev-parse", "-q", "--verify", ref).Output(); err == nil {
		h := strings.TrimSpace(string(old))
		run("", "read-tree", h)
		parent = []string{"-p", h}
	}
	blob := run(content, "hash-object", "-w", "--stdin")
	run("", "update-index", "--add", "--cacheinfo", "100644,"+blob+","+path)
	c := run("edit "+path+"\n", append([]string{"commit-tree", run("", "write-tree")}, parent...)...)
	run("", "update-ref", ref, c)
	return c
}

// serveGit serves the repositories under root over smart HTTP with the real
// git. auth, when given, is the only accepted user and password.
func serveGit(t testing.TB, root string, auth ...string) *httptest.Server {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
		},
	}
	srv := httptest.NewServer(httpHandler(backend, auth))
	t.Cleanup(srv.Close)
	return srv
}

func dial(t testing.TB, url string, auth gitrepo.Auth) gitrepo.Remote {
	t.Helper()
	r, err := gitrepo.Dial(url, auth)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// observer counts what it is told.
type observer struct {
	mu        sync.Mutex
	outcomes  []string
	conflicts int
	trouble   []error
}

func (o *observer) CommitDone(_ time.Duration, _ int, outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes = append(o.outcomes, outcome)
}

func (o *observer) PushConflict() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conflicts++
}

func (o *observer) LocalTrouble(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble = append(o.trouble, err)
}

func (o *observer) troubles() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.trouble)
}

func content(t testing.TB, tr tree.Tree, path string) string {
	t.Helper()
	b, err := tr.ReadFile(path, 0)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(b)
}

// readAll reads every file of the ledger.
func readAll(h gitrepo.Heads, n *int) error {
	return h.Ledger.Tree.Walk(func(_ string, e tree.Entry) error {
		*n++
		_, err := h.Ledger.Tree.Store.File(e.Hash, 0)
		return err
	})
}
