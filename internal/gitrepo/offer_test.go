package gitrepo_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// Offers on a real server: made, replaced, merged by people in three ways and
// recognised, by a daemon that was not there too.
func TestOffersOnARealServer(t *testing.T) {
	dir := bare(t)
	for scheme, url := range urls(t, dir) {
		t.Run(scheme, func(t *testing.T) {
			opts := options(func(o *gitrepo.Options) { o.Ledger = "ledger-" + scheme })
			r := open(t, dial(t, url, gitrepo.Auth{}), opts)
			if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "a", "1"))); err != nil {
				t.Fatal(err)
			}
			for _, way := range []string{"merge", "squash", "rebase"} {
				h := fetch(t, r)
				r.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
				if _, err := r.Offer(t.Context(), request(h, contract("vision", way, "first"))); err != nil {
					t.Fatal(err)
				}
				c, err := r.Offer(t.Context(), request(h, contract("vision", way, "second")))
				if err != nil {
					t.Fatal(err)
				}
				if got := git(t, dir, "rev-parse", gitrepo.OfferBranch+"~1"); got != h.Ledger.Commit.Hash.String() {
					t.Fatalf("the offer stands on %s, want the ledger's head", got)
				}
				parents := []string{"-p", h.Ledger.Commit.Hash.String()}
				if way == "merge" {
					parents = append(parents, "-p", c.Hash.String())
				}
				by := git(t, dir, append([]string{"commit-tree", "-m", way, c.Hash.String() + "^{tree}"}, parents...)...)
				git(t, dir, "update-ref", "refs/heads/ledger-"+scheme, by)
				git(t, dir, "update-ref", "-d", "refs/heads/"+gitrepo.OfferBranch)

				other := open(t, dial(t, url, gitrepo.Auth{}), opts)
				for name, repo := range map[string]*gitrepo.Repo{"itself": r, "another daemon": other} {
					now := fetch(t, repo)
					edits, err := repo.Foreign(t.Context(), h.Ledger.Commit.Hash, now.Ledger.Commit.Hash, nil)
					if err != nil || len(edits) > 0 {
						t.Errorf("%s after a %s: foreign are %v, %v", name, way, edits, err)
					}
					if c, err := repo.Offered(); err != nil || !c.IsZero() {
						t.Errorf("%s: offered is %v, %v", name, c.Hash, err)
					}
				}
				if way == "rebase" { // an edit that takes it back is one all the same
					back := git(t, dir, "commit-tree", "-m", "back", h.Ledger.Commit.Hash.String()+"^{tree}", "-p", by)
					git(t, dir, "update-ref", "refs/heads/ledger-"+scheme, back)
					now := fetch(t, r)
					if edits, err := r.Foreign(t.Context(), h.Ledger.Commit.Hash, now.Ledger.Commit.Hash, nil); err != nil || len(edits) != 1 {
						t.Errorf("a foreign edit after it: %v, %v", edits, err)
					}
				}
			}
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// An offer counts on the ground that it was made on. One that is merged after the
// ledger went on is a foreign edit, whatever it is signed by: what it promised may
// be sold.
func TestOldOffersAreForeign(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options(func(o *gitrepo.Options) { o.Ledger = "ledger" }))
	h, offer := offered(t, r)
	commit(t, r, request(h, contract("speech", "c", "1")))
	h = fetch(t, r)
	r.Accept(h.Inputs.Commit.Hash, h.Ledger.Commit.Hash)
	path := contract("vision", "b", "1").Puts
	for name := range path {
		if _, err := m.Merge("ledger", person("Mallory"), "Merge branch '"+gitrepo.OfferBranch+"'\n", gitobj.Change{Puts: path}, nil, offer.Hash); err != nil {
			t.Fatal(err)
		}
		other := open(t, m, options(func(o *gitrepo.Options) { o.Ledger = "ledger" }))
		for who, repo := range map[string]*gitrepo.Repo{"itself": r, "another daemon": other} {
			now := fetch(t, repo)
			edits, err := repo.Foreign(t.Context(), h.Ledger.Commit.Hash, now.Ledger.Commit.Hash, nil)
			if err != nil || len(edits) != 1 || edits[0].Path != name || !edits[0].Was.Hash.IsZero() {
				t.Errorf("%s: foreign are %v, %v; want %s, which was not there", who, edits, err, name)
			}
		}
	}
}

// offered begins a ledger and offers contract vision/b on it; on is what it was made on.
func offered(t *testing.T, r *gitrepo.Repo) (on gitrepo.Heads, offer gitrepo.Commit) {
	t.Helper()
	if _, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "a", "1"))); err != nil {
		t.Fatal(err) // which begins the ledger
	}
	on = fetch(t, r)
	offer, err := r.Offer(t.Context(), request(on, contract("vision", "b", "1")))
	if err != nil {
		t.Fatal(err)
	}
	return on, offer
}

// An old offer that was merged once, and taken back by a merge, is as foreign the second time:
// that the ledger descends from it makes it no decision.
func TestOldOffersMergedAgainAreForeign(t *testing.T) {
	m := seeded(t)
	opts := options(func(o *gitrepo.Options) { o.Ledger = "ledger" })
	r := open(t, m, opts)
	h, offer := offered(t, r)
	commit(t, r, request(h, contract("speech", "c", "1")))
	stood := fetch(t, r).Ledger
	put := contract("vision", "b", "1").Puts
	merge := func() {
		t.Helper()
		if _, err := m.Merge("ledger", person("Mallory"), "Merge branch '"+gitrepo.OfferBranch+"'\n", gitobj.Change{Puts: put}, nil, offer.Hash); err != nil {
			t.Fatal(err)
		}
	}
	merge()
	back := gitobj.Change{Deletes: slices.Collect(maps.Keys(put))}
	if _, err := m.Merge("ledger", person("Mallory"), "Merge what was\n", back, nil, stood.Commit.Hash); err != nil {
		t.Fatal(err)
	}
	commit(t, r, request(fetch(t, r), contract("speech", "d", "1")))
	accepted := fetch(t, r).Ledger.Commit.Hash
	merge()
	edits, err := r.Foreign(t.Context(), accepted, fetch(t, r).Ledger.Commit.Hash, nil)
	if err != nil || len(edits) != 1 || put[edits[0].Path] == nil || !edits[0].Was.Hash.IsZero() {
		t.Errorf("foreign are %v, %v; want %v, which was not there", edits, err, slices.Collect(maps.Keys(put)))
	}
}

// An old offer that reaches the ledger by way of what it was made on is as foreign as one
// that is merged into the ledger, whatever the ref of offers names.
func TestOldOffersByAWayRoundAreForeign(t *testing.T) {
	type brings func(m *memremote.Remote, head, ground tree.Hash, offer gitrepo.Commit, root tree.Hash) (tree.Hash, error)
	const mallory = "Mallory"
	for name, bring := range map[string]brings{
		"merged into its ground, and that into the ledger": func(m *memremote.Remote, head, ground tree.Hash, offer gitrepo.Commit, root tree.Hash) (tree.Hash, error) {
			step, err := m.Side(person(mallory), "Merge\n", offer.Tree, ground, offer.Hash)
			if err != nil {
				return step, err
			}
			return m.Side(person(mallory), "Merge\n", root, head, step)
		},
		"squashed on its ground, and that merged": func(m *memremote.Remote, head, ground tree.Hash, offer gitrepo.Commit, root tree.Hash) (tree.Hash, error) {
			step, err := m.Side(person(mallory), "What was decided\n", offer.Tree, ground)
			if err != nil {
				return step, err
			}
			return m.Side(person(mallory), "Merge\n", root, head, step)
		},
		"as the first parent": func(m *memremote.Remote, head, _ tree.Hash, offer gitrepo.Commit, root tree.Hash) (tree.Hash, error) {
			return m.Side(person(mallory), "Merge\n", root, offer.Hash, head)
		},
		"squashed, as the first parent": func(m *memremote.Remote, head, ground tree.Hash, offer gitrepo.Commit, root tree.Hash) (tree.Hash, error) {
			step, err := m.Side(person(mallory), "What was decided\n", offer.Tree, ground)
			if err != nil {
				return step, err
			}
			return m.Side(person(mallory), "Merge\n", root, step, head)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			opts := options(func(o *gitrepo.Options) { o.Ledger = "ledger" })
			r := open(t, m, opts)
			h, offer := offered(t, r)
			behind := open(t, m, opts) // it accepted what the offer was made on, and nothing since
			fetch(t, behind)
			commit(t, r, request(h, contract("speech", "c", "1")))
			now := fetch(t, r)
			r.Accept(now.Inputs.Commit.Hash, now.Ledger.Commit.Hash)
			m.SetRef("refs/fleetbroker/offered", offer.Hash)
			put := contract("vision", "b", "1").Puts
			root, err := m.Edited(now.Ledger.Tree, gitobj.Change{Puts: put})
			if err != nil {
				t.Fatal(err)
			}
			head := now.Ledger.Commit.Hash
			merged, err := bring(m, head, h.Ledger.Commit.Hash, offer, root)
			if err != nil {
				t.Fatal(err)
			}
			m.SetRef("refs/heads/ledger", merged)
			for who, from := range map[*gitrepo.Repo]tree.Hash{r: head, open(t, m, opts): head, behind: h.Ledger.Commit.Hash} {
				edits, err := who.Foreign(t.Context(), from, fetch(t, who).Ledger.Commit.Hash, nil)
				if err != nil || len(edits) != 1 || put[edits[0].Path] == nil || !edits[0].Was.Hash.IsZero() {
					t.Errorf("since %s: foreign are %v, %v; want %v, which was not there", from.Short(), edits, err, slices.Collect(maps.Keys(put)))
				}
			}
		})
	}
}

// What an operator let go of stays foreign when somebody merges it back, signed and
// numbered by us as it is.
func TestDroppedCommitsAreForeign(t *testing.T) {
	m := seeded(t)
	opts := options(func(o *gitrepo.Options) { o.Ledger = "ledger" })
	r := open(t, m, opts)
	commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
	stood := fetch(t, r).Ledger.Commit.Hash
	commit(t, r, request(fetch(t, r), contract("vision", "b", "1")))
	commit(t, r, request(fetch(t, r), contract("vision", "b", "2")))
	dropped := fetch(t, r).Ledger.Commit.Hash

	m.SetRef("refs/heads/ledger", stood)
	for _, ref := range []string{"refs/fleetbroker/accepted/inputs", "refs/fleetbroker/accepted/ledger"} {
		m.SetRef(ref, tree.Hash{})
	}
	r = open(t, m, opts)
	commit(t, r, request(fetch(t, r), contract("speech", "c", "1")))
	accepted := fetch(t, r).Ledger.Commit.Hash
	back := contract("vision", "b", "2").Puts
	if _, err := m.Merge("ledger", person("Mallory"), "Merge what was lost\n", gitobj.Change{Puts: back}, nil, dropped); err != nil {
		t.Fatal(err)
	}
	edits, err := r.Foreign(t.Context(), accepted, fetch(t, r).Ledger.Commit.Hash, nil)
	if err != nil || len(edits) != 1 || back[edits[0].Path] == nil || !edits[0].Was.Hash.IsZero() {
		t.Errorf("foreign are %v, %v; want %v, which was not there", edits, err, slices.Collect(maps.Keys(back)))
	}
}

// An offer that another replaced is no decision any more, though our key signed it:
// moved onto the ledger it is foreign, but for the time that a merge takes. The
// offer that stands counts, moved or merged.
func TestReplacedOffersAreForeign(t *testing.T) {
	for name, c := range map[string]struct {
		move    string
		restart bool
		after   time.Duration
		foreign int
	}{
		"replaced":                 {"first", false, time.Hour, 1},
		"replaced, and a restart":  {"first", true, 0, 1},
		"replaced a moment before": {"first", false, time.Minute, 0},
		"standing":                 {"second", false, time.Hour, 0},
		"standing, and a restart":  {"second", true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			now := noon
			opts := signedOptions(t, func(o *gitrepo.Options) { o.Now = func() time.Time { return now } })
			r := open(t, m, opts)
			commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			h := fetch(t, r)
			offers := map[string]gitrepo.Commit{}
			for _, offer := range []string{"first", "second"} {
				c, err := r.Offer(t.Context(), request(h, contract("vision", "b", offer)))
				if err != nil {
					t.Fatal(err)
				}
				offers[offer] = c
			}
			m.SetRef("refs/heads/ledger", offers[c.move].Hash)
			if now = now.Add(c.after); c.restart {
				r = open(t, m, opts)
			}
			head := fetch(t, r).Ledger.Commit.Hash
			edits, err := r.Foreign(t.Context(), h.Ledger.Commit.Hash, head, nil)
			if err != nil || head != offers[c.move].Hash || len(edits) != c.foreign {
				t.Errorf("foreign are %v (%v), want %d", edits, err, c.foreign)
			}
		})
	}
}

func TestOfferIsWithdrawnRefusedAndReplanned(t *testing.T) {
	dir := bare(t)
	r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
	h := fetch(t, r)
	if _, err := r.Offer(t.Context(), request(h, contract("vision", "a", "1"))); err != nil {
		t.Fatal(err)
	}
	if err := r.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refs := git(t, dir, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, gitrepo.OfferBranch) {
		t.Errorf("the branch is still there: %s", refs)
	}
	h = fetch(t, r)
	hook(t, dir, "pre-receive", "echo 'branch is protected' >&2; exit 1\n")
	_, err := r.Offer(t.Context(), request(h, contract("vision", "a", "2")))
	var refused *gitrepo.ErrRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "branch is protected") || !strings.Contains(err.Error(), "allow this account to push to it") {
		t.Errorf("a refused offer says %v", err)
	}
	h.Ledger.Commit.Hash[0] ^= 1
	var replan *gitrepo.ErrReplan
	if _, err := r.Offer(t.Context(), request(h, contract("vision", "a", "2"))); !errors.As(err, &replan) {
		t.Errorf("an offer on another ledger says %v", err)
	}
}
