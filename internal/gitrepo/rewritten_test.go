package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

func rewrite(t testing.TB, m *memremote.Remote, branch string, parent tree.Hash) tree.Hash {
	t.Helper()
	h, err := m.Rewrite(branch, parent, person("Eve"), "another history\n",
		gitobj.Change{Puts: map[string][]byte{"contracts/x/aa/y.yaml": []byte("z")}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRewrittenHistoryStopsEverything(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		for name, mod := range map[string]func(*gitrepo.Options){
			"same process":         nil,
			"restarted":            func(o *gitrepo.Options) { o.Dir = "same" },
			"restarted, no state":  func(o *gitrepo.Options) { o.Dir = "new" },
			"restarted, in memory": func(*gitrepo.Options) {},
		} {
			t.Run(branch+", "+name, func(t *testing.T) {
				m := seeded(t)
				dir := t.TempDir()
				o := options(func(o *gitrepo.Options) { o.Dir = dir })
				r := open(t, m, o)
				commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
				h := fetch(t, r)
				old := m.Head(branch)
				evil := rewrite(t, m, branch, tree.Hash{})
				if mod != nil {
					o := options(mod)
					switch o.Dir {
					case "same":
						if err := r.Close(); err != nil {
							t.Fatal(err)
						}
						o.Dir = dir
					case "new":
						o.Dir = t.TempDir()
					}
					r = open(t, m, o)
				}
				var rewritten *gitrepo.ErrRewritten
				if _, err := r.Fetch(t.Context()); !errors.As(err, &rewritten) || rewritten.Old != old || rewritten.New != evil {
					t.Fatalf("Fetch: got %v, want ErrRewritten from %s to %s", err, old.Short(), evil.Short())
				}
				_, err := r.Commit(t.Context(), request(h, contract("vision", "b", "1")))
				if !errors.As(err, &rewritten) {
					t.Errorf("Commit: got %v, want ErrRewritten", err)
				}
				if got := m.Head(branch); got != evil {
					t.Errorf("%s moved to %s", branch, got)
				}
				if err := r.AcceptRewrite(t.Context(), old); err == nil {
					t.Error("the old head, which is not there any more, was accepted")
				}
				if err := r.AcceptRewrite(t.Context(), evil); err != nil {
					t.Fatalf("AcceptRewrite: %v", err)
				}
				if err := r.AcceptRewrite(t.Context(), evil); err != nil {
					t.Errorf("AcceptRewrite again: %v", err)
				}
				h = fetch(t, r)
				commit(t, r, request(h, contract("vision", "b", "1")))
				fetch(t, open(t, m, options()))
			})
		}
	}
}

// The operator's `reconcile --once --accept-rewrite` runs beside the daemon, on
// the same state directory.
func TestAcceptRewriteFromAnotherProcess(t *testing.T) {
	m := seeded(t)
	dir := t.TempDir()
	o := options(func(o *gitrepo.Options) { o.Dir = dir })
	daemon := open(t, m, o)
	commit(t, daemon, request(fetch(t, daemon), contract("vision", "a", "1")))
	fetch(t, daemon)
	evil := rewrite(t, m, "ledger", tree.Hash{})
	if _, err := daemon.Fetch(t.Context()); err == nil {
		t.Fatal("the rewrite went unnoticed")
	}
	cli := open(t, m, o)
	if err := cli.AcceptRewrite(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	if h := fetch(t, daemon); h.Ledger.Commit.Hash != evil {
		t.Errorf("the daemon is at %s, want %s", h.Ledger.Commit.Hash, evil)
	}
	caches, err := filepath.Glob(filepath.Join(dir, "cache-*"))
	if err != nil || len(caches) != 2 {
		t.Errorf("caches: got %v, %v; want one for each process", caches, err)
	}
}

func TestBranchGone(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
	head := m.Head("ledger")
	m.SetRef("refs/heads/ledger", tree.Hash{})
	var rewritten *gitrepo.ErrRewritten
	if _, err := r.Fetch(t.Context()); !errors.As(err, &rewritten) || !rewritten.New.IsZero() {
		t.Fatalf("got %v, want ErrRewritten with the branch gone", err)
	}
	m.SetRef("refs/heads/ledger", head)
	fetch(t, r)
}

// Readers may see the refs of one push one after the other.
func TestAcceptedRefSeenBeforeItsBranch(t *testing.T) {
	m := seeded(t)
	a, b := open(t, m, options()), open(t, m, options())
	commit(t, a, request(fetch(t, a), contract("vision", "a", "1")))
	fetch(t, b)
	before := m.Head("ledger")
	commit(t, a, request(fetch(t, a), contract("vision", "b", "1")))
	after := m.Head("ledger")
	m.SetRef("refs/heads/ledger", before)
	n := 0
	m.Fault = func(memremote.Op) (bool, error) {
		if n++; n == 2 {
			m.SetRef("refs/heads/ledger", after)
		}
		return true, nil
	}
	if h := fetch(t, b); h.Ledger.Commit.Hash != after {
		t.Errorf("got %s, want %s", h.Ledger.Commit.Hash, after)
	}
}

// A damaged file of accepted heads does not keep a daemon from starting, nor does
// it open the way for a rewrite: the remote's notes count, and without them an
// operator's word.
func TestDamagedAcceptedFile(t *testing.T) {
	for _, content := range []string{"", "{", `{"ledger": "12"}`} {
		m := seeded(t)
		dir := t.TempDir()
		file := filepath.Join(dir, "accepted.json")
		damaged := func() *gitrepo.Repo {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return open(t, m, options(func(o *gitrepo.Options) { o.Dir = dir }))
		}
		r := damaged()
		var none *gitrepo.NoMemoryError
		if _, err := r.Fetch(t.Context()); !errors.As(err, &none) || none.Head != m.Head("main") {
			t.Errorf("accepted.json holding %q and no note at the remote: %v", content, err)
		}
		if err := r.AcceptRewrite(t.Context(), m.Head("main")); err != nil {
			t.Fatal(err)
		}
		commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
		before := m.Head("ledger")
		r = damaged()
		h := fetch(t, r)
		if len(h.Alarms) != 1 || h.Accepted.Ledger != before {
			t.Errorf("with a note at the remote: alarms %q, accepted %s, want %s", h.Alarms, h.Accepted.Ledger, before)
		}
		r.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
		if list, err := filepath.Glob(file + ".damaged-*"); err != nil || len(list) == 0 {
			t.Errorf("the damaged file is not set aside: %q, %v", list, err)
		}
		if a, err := gitrepo.ReadAccepted(dir); err != nil || a.Ledger != before {
			t.Errorf("accepted is %+v, %v", a, err)
		}
		// A ledger that was set back meanwhile is still seen.
		r = damaged()
		m.SetRef("refs/heads/ledger", m.Head("main"))
		var rewritten *gitrepo.ErrRewritten
		if _, err := r.Fetch(t.Context()); !errors.As(err, &rewritten) {
			t.Errorf("a ledger set back behind a damaged file: %v", err)
		}
	}
}

// What a daemon that was killed while it noted the accepted heads has left is
// removed at the next start.
func TestOpen_RemovesTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".accepted.json-123")
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, seeded(t), options(func(o *gitrepo.Options) { o.Dir = dir }))
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is still there", left)
	}
}

func TestForeignEdits(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options(oneBranch))
	commit(t, r, request(fetch(t, r), contract("vision", "a", "1"), contract("vision", "b", "1")))
	h := fetch(t, r)
	r.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
	change := func(who, message string, c gitobj.Change) tree.Hash {
		h, err := m.Commit("main", person(who), message, c)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one := change("Eve", "x\n\nPlan: forged\n", gitobj.Change{Puts: map[string][]byte{"contracts/vision/aa/a.yaml": []byte("evil"), "intents/vision/z.yaml": nil}})
	team(t, m, "intents/vision/c.yaml", "x")
	two := change("Eve", "x\n", gitobj.Change{Deletes: []string{"contracts/vision/aa/b.yaml"}})

	now := fetch(t, r)
	if now.Accepted.Ledger != h.Ledger.Commit.Hash {
		t.Errorf("accepted: got %s, want %s", now.Accepted.Ledger, h.Ledger.Commit.Hash)
	}
	edits, err := r.Foreign(t.Context(), now.Accepted.Ledger, now.Ledger.Commit.Hash, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]tree.Hash{}
	for _, e := range edits {
		got[e.Path] = e.Commit.Hash
		if e.Commit.Author.Name != "Eve" {
			t.Errorf("%s: author %v", e.Path, e.Commit.Author)
		}
	}
	want := map[string]tree.Hash{"contracts/vision/aa/a.yaml": one, "contracts/vision/aa/b.yaml": two}
	if len(got) != 2 || got["contracts/vision/aa/a.yaml"] != one || got["contracts/vision/aa/b.yaml"] != two {
		t.Errorf("got %v, want %v", got, want)
	}
	// Undone by name, from the accepted tree.
	restore := gitrepo.Item{Key: "restore", Puts: map[string][]byte{}, Line: "undo edits of generated files"}
	for _, e := range edits {
		b, err := now.Ledger.Tree.Store.File(e.Was.Hash, 0)
		if err != nil {
			t.Fatal(err)
		}
		restore.Puts[e.Path] = b
	}
	commit(t, r, request(now, restore))
	last := fetch(t, r)
	for _, p := range []string{"contracts/vision/aa/a.yaml", "contracts/vision/aa/b.yaml"} {
		if got := content(t, last.Ledger.Tree, p); got != "1" {
			t.Errorf("%s: got %q, want it restored", p, got)
		}
	}
	for _, from := range []tree.Hash{last.Accepted.Ledger, h.Ledger.Commit.Hash} {
		if edits, err = r.Foreign(t.Context(), from, last.Ledger.Commit.Hash, nil); err != nil || len(edits) != 0 {
			t.Errorf("after the restore, since %s: got %v, %v", from.Short(), edits, err)
		}
	}
}

// A merge of a team's branch that was cut before our last commits carries our
// own files, not edits of them.
func TestMergesAreNotForeignEdits(t *testing.T) {
	dir := bare(t)
	r := open(t, dial(t, dir, gitrepo.Auth{}), options(oneBranch))
	h := fetch(t, r)
	git(t, dir, "branch", "feature", "main")
	res := commit(t, r, request(h, contract("vision", "a", "1")))
	gitPut(t, dir, "feature", "intents/vision/new.yaml", "x")
	work := filepath.Join(t.TempDir(), "work")
	git(t, ".", "clone", "-q", "-b", "main", dir, work)
	git(t, work, "merge", "-q", "--no-ff", "-m", "merge", "origin/feature")
	git(t, work, "push", "-q", "origin", "main")
	now := fetch(t, r)
	edits, err := r.Foreign(t.Context(), res.Head(), now.Ledger.Commit.Hash, nil)
	if err != nil || len(edits) != 0 {
		t.Errorf("a merge: got %v, %v; want no foreign edits", edits, err)
	}
	changes, err := r.Changes(t.Context(), res.Head(), now.Ledger.Commit.Hash, "intents")
	if err != nil {
		t.Fatal(err)
	}
	c := changes["intents/vision/new.yaml"]
	if len(changes) != 1 || c.Kind != gitrepo.Added || c.Commit.Hash.String() != git(t, dir, "rev-parse", "feature") {
		t.Errorf("Changes: got %+v, want the team's commit, not the merge", changes)
	}
	if got := slices.Collect(slices.Values(now.Ledger.Commit.Parents)); len(got) != 2 {
		t.Errorf("parents: %v", got)
	}
}

// A merge that takes an old commit's tree rolls back what was written since,
// though it has nothing that was not ours once.
func TestMergesThatRollBackAreForeignEdits(t *testing.T) {
	const path = "contracts/vision/aa/a.yaml"
	for name, parents := range map[string]func(head, old string) []string{
		"the head first": func(head, old string) []string { return []string{head, old} },
		"the old first":  func(head, old string) []string { return []string{old, head} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t)
			r := open(t, dial(t, dir, gitrepo.Auth{}), options(oneBranch))
			commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			old := fetch(t, r).Ledger.Commit
			commit(t, r, request(fetch(t, r), contract("vision", "a", "2")))
			accepted := fetch(t, r).Ledger.Commit
			args := []string{"commit-tree", "-m", "merge", old.Tree.String()}
			for _, p := range parents(accepted.Hash.String(), old.Hash.String()) {
				args = append(args, "-p", p)
			}
			merge := git(t, dir, args...)
			git(t, dir, "update-ref", "refs/heads/main", merge)
			now := fetch(t, r)
			edits, err := r.Foreign(t.Context(), accepted.Hash, now.Ledger.Commit.Hash, nil)
			if err != nil || len(edits) != 1 || edits[0].Path != path || edits[0].Commit.Hash.String() != merge {
				t.Fatalf("got %v, %v; want %s by %s", edits, err, path, merge)
			}
			was, err := now.Ledger.Tree.Store.File(edits[0].Was.Hash, 0)
			if err != nil || string(was) != "2" {
				t.Errorf("to put back: %q, %v", was, err)
			}
		})
	}
}

// What was accepted under another trust root says nothing under this one.
func TestAcceptedUnderAnotherRoot(t *testing.T) {
	m := seeded(t)
	signer, public := memremote.KeyPair(t, "d")
	keys, err := gitrepo.NewKeys([]gitrepo.Key{{Principal: "d", Text: public}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	under := func(root string) *gitrepo.Repo {
		return open(t, m, options(func(o *gitrepo.Options) {
			o.Dir = dir
			o.Identity.Signer, o.Identity.Trusted, o.Identity.Signed, o.Identity.Root = signer, keys, true, root
		}))
	}
	r := under("sha256:a")
	h := fetch(t, r)
	r.Accept(h.Inputs.Commit.Hash, tree.Hash{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[string]tree.Hash{"sha256:a": h.Inputs.Commit.Hash, "sha256:b": {}} {
		r := under(root)
		if got := fetch(t, r).Accepted.Inputs; got != want {
			t.Errorf("under %s: accepted is %s, want %s", root, got, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
