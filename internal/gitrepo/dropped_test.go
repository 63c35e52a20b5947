package gitrepo_test

import (
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// What an operator lets go of is named by the next commit, once, whichever
// process makes it.
func TestAcceptRewriteIsOnRecord(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		m := seeded(t)
		o := options(func(o *gitrepo.Options) { o.Dir = t.TempDir() })
		daemon := open(t, m, o)
		commit(t, daemon, request(fetch(t, daemon), contract("vision", "a", "1")))
		fetch(t, daemon)
		old := m.Head(branch)
		evil := rewrite(t, m, branch, tree.Hash{})
		cli := open(t, m, o)
		if err := cli.AcceptRewrite(t.Context(), evil); err != nil {
			t.Fatal(err)
		}
		first := commit(t, daemon, request(fetch(t, daemon), contract("vision", "b", "1")))
		second := commit(t, daemon, request(fetch(t, daemon), contract("vision", "c", "1")))
		if got := first.Commits[0].Commit.Trailers("Dropped"); !slices.Equal(got, []string{branch + " " + old.String()}) {
			t.Errorf("%s: the first commit says %q, want that %s was let go of", branch, got, old.Short())
		}
		if got := second.Commits[0].Commit.Trailers("Dropped"); len(got) > 0 {
			t.Errorf("%s: the second says it again: %q", branch, got)
		}
	}
}

// The commit that states which head of the ledger was let go of has a number above that
// head's: agents were told of that one, and take no lower ones.
func TestAcceptRewrite_NumbersAboveWhatWasLetGoOf(t *testing.T) {
	for name, branch := range map[string]string{"the ledger": "ledger", "the inputs": "main"} {
		m := seeded(t)
		o := options(func(o *gitrepo.Options) { o.Dir = t.TempDir() })
		r := open(t, m, o)
		put := func(name string) gitrepo.Commit {
			return commit(t, r, request(fetch(t, r), contract("vision", name, "1"))).Commits[0].Commit
		}
		backup := put("a").Hash
		if branch == "main" {
			backup = m.Head("main")
		}
		put("b")
		last := put("c")
		fetch(t, r)
		want := []string{"ledger 4", "ledger 5"}
		if branch == "ledger" {
			m.SetRef(gitrepo.Branch(branch), backup)
		} else {
			backup = rewrite(t, m, branch, tree.Hash{})
		}
		if err := r.AcceptRewrite(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		for i, contract := range []string{"d", "e"} {
			if c := put(contract); c.Trailer("Ledger") != want[i] {
				t.Errorf("%s, commit %d after: Ledger is %q, want %q (before: %q)", name, i+1, c.Trailer("Ledger"), want[i], last.Trailer("Ledger"))
			}
		}
	}
}
