package gitrepo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
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
