package cli_test

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/test/story"
)

var update = flag.Bool("update", false, "rewrite expected output inside the scripts")

// The clock of every script: a Friday noon in Rome.
var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	main := func() {
		s := cli.System()
		s.Now = func() time.Time { return noon }
		// TERMINAL=1 is what a person at a terminal sees, without colours; pty
		// finds out for itself.
		if how := os.Getenv("TERMINAL"); how != "pty" {
			s.Terminal = how != ""
		}
		os.Exit(cli.Run(context.Background(), s, os.Args[1:]))
	}
	testscript.Main(cleaned{m}, map[string]func(){"fleetbroker": main, "kubectl-fleetbroker": main})
}

// cleaned removes, at the end, what tests have built.
type cleaned struct{ *testing.M }

func (m cleaned) Run() int {
	defer cli.RemovePrograms()
	return m.M.Run()
}

// Each script is one topic.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GIT_AUTHOR_NAME", "Ada L.")
			e.Setenv("GIT_AUTHOR_EMAIL", "ada@example.org")
			e.Setenv("GIT_COMMITTER_NAME", "Ada L.")
			e.Setenv("GIT_COMMITTER_EMAIL", "ada@example.org")
			e.Setenv("GIT_AUTHOR_DATE", "2026-11-20T10:00:00Z")
			e.Setenv("GIT_COMMITTER_DATE", "2026-11-20T10:00:00Z")
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND…: the command ends with exactly this code.
			"exits": exits,
			// serve FILE: a daemon's GET /market that answers FILE, at $MARKET.
			"serve": serve,
			// reserve DIR: what the daemon would commit, as files in DIR.
			"reserve": reserve,
			// contract DIR VAR: the name of the only contract of a fleet.
			"contract": contract,
			// history DIR [signed [lost]]: a clone of a fleet in which a daemon has worked for a
			// while, with its ledger on the branch ledger. "signed": its commits are
			// signed with the key in DIR.keys, which the trust root there names. "lost":
			// after $STOOD the daemon signs with the key in DIR.next.
			"history": history,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = err.Error()
		if len(got) > len("exit status ") {
			got = got[len("exit status "):]
		}
	}
	if got != args[0] {
		ts.Fatalf("%v: exit code %s, want %s", args[1:], got, args[0])
	}
}

func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FILE")
	}
	content := ts.ReadFile(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/market" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Fleetbroker-Market", "9d1e03a1c3d4e5f607182930a1b2c3d4e5f60718")
		_, _ = w.Write([]byte(content))
	}))
	ts.Defer(server.Close)
	ts.Setenv("MARKET", server.URL)
}

func reserve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reserve DIR")
	}
	dir := ts.MkAbs(args[0])
	files, err := tree.FromDisk(dir, 0)
	ts.Check(err)
	f, err := fleet.NewReader().Read(context.Background(), files, nil)
	ts.Check(err)
	old, _, err := ledger.Read(context.Background(), files, nil)
	ts.Check(err)
	m := market.New(market.Options{Now: func() time.Time { return noon }})
	m.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors, Prices: f.Prices})
	plan := planner.Decide(world.Build(world.Input{
		Now: v1alpha1.TimeOf(noon.Add(-time.Hour)), Fleet: f, Ledger: old, Market: m.Snapshot(), Inputs: "4f1c2abd6c1f7f0f5d0c1f6b6e9b1a2c3d4e5f60",
	}))
	changes := ledger.Changes{Spends: plan.Spends}
	for _, c := range plan.Contracts {
		changes.Contracts = append(changes.Contracts, model.Change{Before: c.Before, After: c.After})
	}
	for _, s := range plan.States {
		changes.States = append(changes.States, model.StateChange{Before: s.Before, After: s.After})
	}
	puts, deletes, err := changes.Files()
	ts.Check(err)
	for name, content := range puts {
		to := filepath.Join(dir, filepath.FromSlash(name))
		ts.Check(os.MkdirAll(filepath.Dir(to), 0o755))
		ts.Check(os.WriteFile(to, content, 0o644))
	}
	for _, name := range deletes {
		ts.Check(os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
	}
}

func history(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 || len(args) > 1 && args[1] != "signed" || len(args) > 2 && args[2] != "lost" {
		ts.Fatalf("usage: history DIR [signed [lost]]")
	}
	var signer gitrepo.Signer
	public := ""
	dir := ts.MkAbs(args[0])
	if len(args) > 1 {
		signer, public = newKeys(ts, args[0]+".keys")
	}
	s := story.Lived(fatal{ts}, "ledger", signer, public)
	if len(args) > 2 {
		ts.Setenv("STOOD", s.Remote.Head("ledger").String())
		t, err := s.Remote.Tree(s.Remote.Head("main"))
		ts.Check(err)
		policy, err := t.ReadFile("fleet.yaml", 1<<20)
		ts.Check(err)
		next, nextPublic := newKeys(ts, args[0]+".next")
		s.Push("Another key", map[string]string{"fleet.yaml": strings.Replace(string(policy), public, nextPublic, 1)})
		s.SignWith(next)
		s.Ask("later", 1, "")
		s.Rest()
	}
	repo, err := git.PlainInit(dir, false)
	ts.Check(err)
	refs := s.Remote.AllRefs()
	var heads []tree.Hash
	for _, h := range refs {
		heads = append(heads, h)
	}
	everything := func(map[string]tree.Hash) (want, have []tree.Hash) { return heads, nil }
	ts.Check(s.Remote.Fetch(context.Background(), everything, func(pack io.Reader) error { return packfile.UpdateObjectStorage(repo.Storer, pack) }))
	for name, h := range refs {
		ts.Check(repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.Hash(h))))
	}
	w, err := repo.Worktree()
	ts.Check(err)
	ts.Check(w.Checkout(&git.CheckoutOptions{Branch: "refs/heads/main", Force: true}))
}

// newKeys are a signer and its public line, of keys that init makes in a
// directory.
func newKeys(ts *testscript.TestScript, dir string) (gitrepo.Signer, string) {
	ts.Check(ts.Exec("fleetbroker", "init", dir+".fleet", "--keys-dir", dir))
	at := ts.MkAbs(dir)
	line, err := os.ReadFile(filepath.Join(at, "ledger.pub"))
	ts.Check(err)
	signer, err := gitrepo.SSHSigner(filepath.Join(at, "ledger"), "")
	ts.Check(err)
	return signer, strings.Join(strings.Fields(string(line))[:2], " ")
}

// fatal lets what needs a test run in a script.
type fatal struct{ *testscript.TestScript }

func (fatal) Helper()          {}
func (f fatal) Fatal(v ...any) { f.Fatalf("%v", v) }

func contract(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contract DIR VAR")
	}
	files, err := tree.FromDisk(ts.MkAbs(args[0]), 0)
	ts.Check(err)
	l, _, err := ledger.Read(context.Background(), files, nil)
	ts.Check(err)
	if l.Len() != 1 {
		ts.Fatalf("there are %d contracts, want 1", l.Len())
	}
	for c := range l.Contracts() {
		ts.Setenv(args[1], c.Metadata.Name)
	}
}
