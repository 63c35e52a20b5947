package gitrepo_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// word is an operator's, as the trust root's file has it.
type word struct {
	entries []letgo.Entry
	said    []string
}

func (w *word) Entries() []letgo.Entry { return w.entries }
func (w *word) Accepted(branch string, at tree.Hash) {
	w.said = append(w.said, fmt.Sprint("accepted ", branch, " ", at))
}
func (w *word) Unreached(e letgo.Entry) { w.said = append(w.said, fmt.Sprint("unreached ", e.Commit)) }

// One entry of an operator has a rewritten head accepted by every replica, also by one
// that comes late or has no state, each once; one signed commit names what was let go of.
// The entry stays in the file, and excuses no later rewrite, to the same head neither.
func TestRewriteNamedByAnOperator(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		for name, set := range map[string]func(*gitrepo.Repo, tree.Hash) tree.Hash{
			"set back": func(r *gitrepo.Repo, old tree.Hash) tree.Hash {
				info, err := r.Info(old)
				if err != nil || len(info.Parents) == 0 {
					t.Fatalf("%v, %v", info, err)
				}
				return info.Parents[0]
			},
			"another history": func(*gitrepo.Repo, tree.Hash) tree.Hash { return tree.Hash{} },
		} {
			t.Run(branch+", "+name, func(t *testing.T) {
				m := seeded(t)
				signed := signedOptions(t)
				w := &word{}
				replica := func() *gitrepo.Repo {
					o := signed
					o.Dir = t.TempDir()
					r := open(t, m, o)
					r.Follow(w)
					return r
				}
				leader, late := replica(), replica()
				put := func(r *gitrepo.Repo, name string) gitrepo.Result {
					return commit(t, r, request(fetch(t, r), contract("vision", name, "1")))
				}
				put(leader, "a")
				team(t, m, "intents/vision/x.yaml", "x")
				h := fetch(t, leader)
				leader.Accept(h.Inputs.Commit.Hash, tree.Hash{})
				put(leader, "b")
				h = fetch(t, late)
				late.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
				put(leader, "c")
				old := m.Head(branch)
				at := set(leader, old)
				if at.IsZero() {
					at = rewrite(t, m, branch, tree.Hash{})
				} else {
					m.SetRef(gitrepo.Branch(branch), at)
				}
				var rewritten *gitrepo.ErrRewritten
				stops := func(what string, r *gitrepo.Repo) {
					t.Helper()
					if _, err := r.Fetch(t.Context()); !errors.As(err, &rewritten) {
						t.Fatalf("%s: got %v, want ErrRewritten", what, err)
					}
				}
				stops("without an entry", leader)
				stops("without an entry", late)
				w.entries = []letgo.Entry{{Branch: gitrepo.Branch(branch), Commit: tree.BlobHash([]byte("x")), Drops: old}}
				stops("by an entry for a commit that is not there", leader)
				if len(w.said) != 1 || w.said[0] != fmt.Sprint("unreached ", w.entries[0].Commit) {
					t.Errorf("reported %q", w.said)
				}
				w.said, w.entries = nil, []letgo.Entry{{Branch: gitrepo.Branch(branch), Commit: at, Drops: old}}
				first := put(leader, "d")
				if got := first.Commits[0].Commit.Trailers("Dropped"); !slices.Equal(got, []string{branch + " " + old.String()}) {
					t.Errorf("the next commit says %q, want that %s was let go of", got, old.Short())
				}
				fetch(t, late)
				if dropping, err := late.Dropping(); err != nil || dropping {
					t.Errorf("the late replica would write it again: %v", err)
				}
				put(late, "e")
				fetch(t, replica())
				for _, said := range w.said {
					if want := fmt.Sprint("accepted ", branch, " ", at); said != want {
						t.Errorf("reported %q, want %q", said, want)
					}
				}
				if n := len(w.said); n < 1 || n > 2 { // the last had nothing else to go by
					t.Errorf("reported %d times: %q", n, w.said)
				}
				fetch(t, leader)
				if name != "set back" || branch == "ledger" { // else it is on top of what was accepted
					m.SetRef(gitrepo.Branch(branch), old)
					stops("put back to what was let go of", leader)
				}
				m.SetRef(gitrepo.Branch(branch), at)
				if branch == "ledger" { // of the inputs nothing has come after it
					stops("set back to the head of the entry again", leader)
					stops("set back to the head of the entry again", late)
					stops("set back to the head of the entry again, without state", replica())
				}
			})
		}
	}
}
