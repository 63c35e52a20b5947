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
