package gitrepo_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// The maker of a commit writes its date. A branch that is dated before our own
// last commits is none the older for it: what it changes of the ledger is found.
func TestForgedDatesHideNothing(t *testing.T) {
	const path = "contracts/vision/aa/a.yaml"
	for name, when := range map[string]time.Time{"now": noon, "1970": time.Unix(0, 0), "2100": noon.AddDate(74, 0, 0)} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			r := open(t, m, options())
			commit(t, r, request(fetch(t, r), contract("vision", "x", "1")))
			accepted := fetch(t, r).Ledger.Commit.Hash
			cut := commit(t, r, request(fetch(t, r), contract("vision", "a", "1"))).Head()
			head := commit(t, r, request(fetch(t, r), contract("vision", "b", "1"))).Head()
			eve := person("Eve")
			eve.When = when
			evil := gitobj.Change{Puts: map[string][]byte{path: []byte("evil")}}
			branch, err := m.Rewrite("aside", cut, eve, "aside\n", evil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Merge("ledger", eve, "merge\n", evil, nil, branch); err != nil {
				t.Fatal(err)
			}
			now := fetch(t, r)
			for _, from := range []tree.Hash{accepted, cut, head} {
				edits, err := r.Foreign(t.Context(), from, now.Ledger.Commit.Hash, nil)
				if err != nil || len(edits) != 1 || edits[0].Path != path || edits[0].Commit.Hash != branch {
					t.Errorf("since %s: got %v, %v; want %s by %s", from.Short(), edits, err, path, branch.Short())
				}
			}
		})
	}
}
