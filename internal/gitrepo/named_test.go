package gitrepo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Who can push refs makes a standing entry count again neither by the note of what is
// accepted nor by branches: nothing that came after its commit is let go of, nothing is
// recorded a second time, and the note is put right.
func TestStandingEntryLowersNothing(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		t.Run(branch, func(t *testing.T) {
			m := seeded(t)
			w := &word{}
			o := signedOptions(t)
			o.Dir = t.TempDir()
			r := open(t, m, o)
			r.Follow(w)
			note := "refs/fleetbroker/accepted/" + map[string]string{"main": "inputs", "ledger": "ledger"}[branch]
			put := func(name string) { commit(t, r, request(fetch(t, r), contract("vision", name, "1"))) }
			accept := func() {
				h := fetch(t, r)
				r.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
			}
			accept()
			put("a")
			put("b")
			old := m.Head(branch)
			at := rewrite(t, m, branch, tree.Hash{})
			w.entries = []letgo.Entry{{Branch: gitrepo.Branch(branch), Commit: at, Drops: old}}
			accept()
			put("c")
			team(t, m, "intents/vision/x.yaml", "x")
			accept()
			put("d")
			stands, said := m.Head(branch), len(w.said)
			if said != 1 || stands == at {
				t.Fatalf("reported %q, %s at %s", w.said, branch, stands.Short())
			}
			m.SetRef(note, old)
			h := fetch(t, r)
			if accepted := map[string]tree.Hash{"main": h.Accepted.Inputs, "ledger": h.Accepted.Ledger}[branch]; accepted != stands {
				t.Errorf("the note was moved to what was let go of: %s is accepted, want %s", accepted.Short(), stands.Short())
			}
			if len(h.Alarms) != 1 || !strings.Contains(h.Alarms[0], note+" names "+old.Short()) || len(w.said) != said {
				t.Errorf("alarms %q, reported %q", h.Alarms, w.said)
			}
			if dropping, err := r.Dropping(); err != nil || dropping {
				t.Errorf("it would be recorded again: %v", err)
			}
			if err := r.PutRight(t.Context()); err != nil || m.AllRefs()[note] != stands {
				t.Errorf("the note is at %s, %v", m.AllRefs()[note].Short(), err)
			}
			m.SetRef(note, old)
			m.SetRef(gitrepo.Branch(branch), at)
			if _, err := r.Fetch(t.Context()); !errors.As(err, new(*gitrepo.ErrRewritten)) {
				t.Errorf("set back to the entry's commit: got %v, want ErrRewritten", err)
			}
		})
	}
}

// The line that an operator can take as it is names only what a key of the ledger has
// signed, never what somebody pushed on top or in its place.
func TestRewriteProposesWhatIsSigned(t *testing.T) {
	m := seeded(t)
	o := signedOptions(t)
	o.Dir = t.TempDir()
	r := open(t, m, o)
	put := func(name string) tree.Hash {
		return commit(t, r, request(fetch(t, r), contract("vision", name, "1"))).Head()
	}
	signed := put("a")
	old := put("b")
	says := func(want, not string) {
		t.Helper()
		_, err := r.Fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), not) {
			t.Errorf("got %v, want %q and not %q", err, want, not)
		}
	}
	evil := rewrite(t, m, "ledger", signed)
	says("(1 commit by eve@example.org), and accept the newest that a key of the list ledger signed, after which all is judged: for all replicas by the trust root, `accept: [{branch: ledger, commit: "+signed.String()+", drops: "+old.String()+"}]`", "commit: "+evil.String())
	evil = rewrite(t, m, "ledger", tree.Hash{})
	says("`accept: [{branch: ledger, commit: …, drops: "+old.String()+"}]`", "commit: "+evil.String())
	m.SetRef(gitrepo.Branch("ledger"), old)
	main := m.Head("main")
	evil = rewrite(t, m, "main", tree.Hash{})
	says("`accept: [{branch: main, commit: …, drops: "+main.String()+"}]`", "commit: "+evil.String())
}
