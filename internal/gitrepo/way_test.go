package gitrepo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Refs whose names git cannot keep next to the fleet's raise an alarm, are
// deleted, and stop neither the ledger nor what is noted beside it.
func TestDeletesRefsInTheWayOfItsOwn(t *testing.T) {
	day := gitrepo.MarketDay(noon)
	for i, tt := range []struct{ own, stray string }{
		{"refs/fleetbroker/accepted/ledger", "refs/fleetbroker/accepted/ledger/x"},
		{"refs/fleetbroker/accepted/inputs", "refs/fleetbroker/accepted/inputs/x/y"},
		{"refs/fleetbroker/accepted/ledger", "refs/fleetbroker/accepted"},
		{"refs/fleetbroker/offered", "refs/fleetbroker/offered/x"},
		{day, day + "/x"},
		{day, "refs/fleetbroker/market"},
	} {
		whens := []string{"before a fetch", "after a fetch", "and put right"}
		if i > 0 {
			whens = whens[i%2 : i%2+1]
		}
		for _, when := range whens {
			t.Run(tt.stray+" "+when, func(t *testing.T) {
				dir := bare(t)
				r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
				commit(t, r, marketed(fetch(t, r), "a"))
				if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "o", "1"))); err != nil {
					t.Fatal(err)
				}
				h := fetch(t, r)
				for _, ref := range strings.Fields(git(t, dir, "for-each-ref", "--format=%(refname)", tt.own, tt.stray)) {
					git(t, dir, "update-ref", "-d", ref)
				}
				if tt.own == "refs/fleetbroker/offered" { // whose branch counts as another account's without it
					git(t, dir, "update-ref", "-d", "refs/heads/"+gitrepo.OfferBranch)
				}
				git(t, dir, "update-ref", tt.stray, "main")
				if when != "after a fetch" {
					h = fetch(t, r)
					if len(h.Alarms) != 1 || !strings.HasPrefix(h.Alarms[0], tt.stray+" ") {
						t.Errorf("alarms %q", h.Alarms)
					}
				}
				if when == "and put right" {
					if err := r.PutRight(t.Context()); err != nil {
						t.Fatal(err)
					}
					if refs := git(t, dir, "for-each-ref", tt.stray); refs != "" && !strings.HasPrefix(tt.own, tt.stray) {
						t.Errorf("left: %s", refs)
					}
				}
				res := commit(t, r, marketed(h, "b"))
				if got := git(t, dir, "rev-parse", "ledger"); got != res.Head().String() {
					t.Errorf("the ledger is at %s, want %s", got, res.Head())
				}
				if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "o", "2"))); err != nil {
					t.Error(err)
				}
				commit(t, r, marketed(fetch(t, r), "c"))
				git(t, dir, "rev-parse", "--verify", tt.own)
				if h := fetch(t, r); len(h.Alarms) > 0 {
					t.Errorf("after it was put right: %q", h.Alarms)
				}
			})
		}
	}
}

func marketed(h gitrepo.Heads, name string) gitrepo.Request {
	q := request(h, contract("vision", name, "1"))
	q.Market = tree.NewMemory().Build(map[string][]byte{"paris": []byte(name)})
	return q
}

// A server that does not let the ref go keeps the ledger waiting for nothing.
func TestLeavesOutHintsWhoseWayStaysBlocked(t *testing.T) {
	dir := bare(t)
	hook(t, dir, "update", `case $1 in */x) exit 1;; esac`)
	r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
	git(t, dir, "update-ref", "refs/fleetbroker/accepted/ledger/x", "main")
	git(t, dir, "update-ref", gitrepo.MarketDay(noon)+"/x", "main")
	for _, name := range []string{"a", "b"} {
		res := commit(t, r, marketed(fetch(t, r), name))
		if got := git(t, dir, "rev-parse", "ledger"); got != res.Head().String() {
			t.Errorf("the ledger is at %s, want %s", got, res.Head())
		}
	}
	git(t, dir, "rev-parse", "--verify", "refs/fleetbroker/accepted/inputs")
}

// People's branches are not deleted: the error names the branch and the command.
func TestNamesBranchInTheWay(t *testing.T) {
	for _, branch := range []string{"ledger/x", gitrepo.OfferBranch + "/x", "fleetbroker"} {
		for _, late := range []bool{false, true} {
			dir := bare(t)
			r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
			h := fetch(t, r)
			git(t, dir, "branch", branch, "main")
			if !late {
				h = fetch(t, r)
			}
			var err error
			if branch == "ledger/x" {
				_, err = r.Commit(t.Context(), request(h, contract("vision", "a", "1")))
			} else if _, err = r.Offer(t.Context(), request(h, contract("vision", "a", "1"))); late {
				continue // the next round has fetched
			}
			var way *gitrepo.ErrBranchInTheWay
			if !errors.As(err, &way) || !strings.Contains(err.Error(), "git push origin --delete "+branch) {
				t.Errorf("%s: got %v", branch, err)
			}
			git(t, dir, "rev-parse", "--verify", "refs/heads/"+branch)
		}
	}
}

// In memory as on a real server.
func TestDeletesRefsInTheWayInMemory(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	m.SetRef("refs/fleetbroker/accepted/ledger/x", m.Head("main"))
	commit(t, r, marketed(fetch(t, r), "a"))
	refs := m.AllRefs()
	if refs["refs/fleetbroker/accepted/ledger"] != m.Head("ledger") || !refs["refs/fleetbroker/accepted/ledger/x"].IsZero() {
		t.Errorf("refs %v", refs)
	}
}
