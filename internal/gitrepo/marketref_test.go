package gitrepo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// A market ref that another account replaced, deleted or put on what is no commit
// is named and put back, by the next look or the next commit, also after a restart:
// no snapshot of before is lost, and the ledger goes on. Another replica's snapshots
// are no such thing.
func TestMarketRef_OfAnotherAccountIsPutBack(t *testing.T) {
	ref := gitrepo.MarketDay(noon)
	published := func(t *testing.T, dir string, names ...string) {
		t.Helper()
		day, err := gitrepo.ReadPublished(t.Context(), dial(t, "file://"+dir, gitrepo.Auth{}), noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, err := day.Market(tree.NewMemory().Build(map[string][]byte{"paris": []byte(name)}).Root); err != nil {
				t.Errorf("the snapshot %s: %v", name, err)
			}
		}
	}
	for name, change := range map[string]func(dir string){
		"replaced": func(dir string) { git(t, dir, "update-ref", ref, "main") },
		"set back": func(dir string) { git(t, dir, "update-ref", ref, ref+"~1") },
		"deleted":  func(dir string) { git(t, dir, "update-ref", "-d", ref) },
		"a blob": func(dir string) {
			git(t, dir, "update-ref", ref, git(t, dir, "rev-parse", "main:intents/vision/a.yaml"))
		},
	} {
		for _, restarted := range []bool{false, true} {
			for _, fetched := range []bool{true, false} {
				t.Run(name+map[bool]string{true: ", restarted"}[restarted]+map[bool]string{false: ", found by the commit"}[fetched], func(t *testing.T) {
					dir := bare(t)
					o := options(func(o *gitrepo.Options) { o.Dir = t.TempDir() })
					r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), o)
					commit(t, r, marketed(fetch(t, r), "a"))
					commit(t, r, marketed(fetch(t, r), "b"))
					h := fetch(t, r)
					if restarted {
						if err := r.Close(); err != nil {
							t.Fatal(err)
						}
						r = open(t, dial(t, "file://"+dir, gitrepo.Auth{}), o)
						if !fetched {
							h = fetch(t, r)
						}
					}
					change(dir)
					if fetched {
						h = fetch(t, r)
						if alarms := strings.Join(h.Alarms, "\n"); !strings.Contains(alarms, ref+" was written by another account") {
							t.Errorf("alarms %q", alarms)
						}
						if err := r.PutRight(t.Context()); err != nil {
							t.Error(err)
						}
						if h = fetch(t, r); len(h.Alarms) > 0 {
							t.Errorf("after it was put right: %q", h.Alarms)
						}
						published(t, dir, "a", "b")
					}
					commit(t, r, marketed(h, "c"))
					published(t, dir, "a", "b", "c")
				})
			}
		}
	}
	t.Run("another replica", func(t *testing.T) {
		dir := bare(t)
		a, b := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options()), open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
		for i, r := range []*gitrepo.Repo{a, b, a, b} {
			h := fetch(t, r)
			if len(h.Alarms) > 0 {
				t.Errorf("alarms %q", h.Alarms)
			}
			commit(t, r, marketed(h, string(rune('a'+i))))
		}
		published(t, dir, "a", "b", "c", "d")
	})
}

// What the remote has lost cannot be put back: the chain is begun again, and the
// ledger goes on.
func TestMarketRef_ThatIsLostIsBegunAgain(t *testing.T) {
	dir := bare(t)
	r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
	commit(t, r, marketed(fetch(t, r), "a"))
	h := fetch(t, r)
	git(t, dir, "update-ref", gitrepo.MarketDay(noon), git(t, dir, "rev-parse", "main:intents/vision/a.yaml"))
	git(t, dir, "reflog", "expire", "--expire=now", "--all")
	git(t, dir, "gc", "-q", "--prune=now")
	commit(t, r, marketed(h, "b")) // the server may take the ledger alone
	h = fetch(t, r)
	if err := r.PutRight(t.Context()); err != nil {
		t.Error(err)
	}
	commit(t, r, marketed(h, "c"))
	if h = fetch(t, r); len(h.Alarms) > 0 {
		t.Errorf("alarms %q", h.Alarms)
	}
	git(t, dir, "rev-parse", "--verify", gitrepo.MarketDay(noon)+"^{commit}")
}

// Whoever deletes or moves the note of the last offer stops no offers: what stands
// on the branch is ours by this process's word or by our signature. What people
// pushed there stays.
func TestOffer_GoesOnWithoutItsNote(t *testing.T) {
	for name, move := range map[string]func(dir string){
		"deleted": func(dir string) { git(t, dir, "update-ref", "-d", "refs/fleetbroker/offered") },
		"moved":   func(dir string) { git(t, dir, "update-ref", "refs/fleetbroker/offered", "main") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t)
			remote := dial(t, "file://"+dir, gitrepo.Auth{})
			r := open(t, remote, options())
			first, err := r.Offer(t.Context(), request(fetch(t, r), contract("vision", "a", "1")))
			if err != nil {
				t.Fatal(err)
			}
			move(dir)
			h := fetch(t, r)
			if c, err := r.Offered(); err != nil || c.Hash != first.Hash {
				t.Errorf("offered: %s, %v, want %s", c.Hash.Short(), err, first.Hash.Short())
			}
			if _, err := r.Offer(t.Context(), request(h, contract("vision", "b", "1"))); err != nil {
				t.Fatalf("the process that made it: %v", err)
			}
			move(dir)
			other := open(t, remote, options())
			h = fetch(t, other)
			if c, err := other.Offered(); err != nil || !c.Hash.IsZero() {
				t.Errorf("offered, to another process: %s, %v; want nothing that counts", c.Hash.Short(), err)
			}
			if _, err := other.Offer(t.Context(), request(h, contract("vision", "c", "1"))); err != nil {
				t.Fatalf("another process: %v", err)
			}
			move(dir)
			git(t, dir, "update-ref", "refs/heads/"+gitrepo.OfferBranch,
				git(t, dir, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit-tree", "-m", "mine", "main^{tree}"))
			h = fetch(t, other)
			if _, err := other.Offered(); !errors.Is(err, gitrepo.ErrOfferTaken) {
				t.Errorf("a branch of another account: %v", err)
			}
			if _, err := other.Offer(t.Context(), request(h, contract("vision", "d", "1"))); !errors.Is(err, gitrepo.ErrOfferTaken) {
				t.Errorf("an offer over another account's branch: %v", err)
			}
		})
	}
}

// A proposal next to whose branch git cannot keep one of people's names that, and
// leaves it.
func TestPropose_NamesTheBranchInTheWay(t *testing.T) {
	for _, branch := range []string{"enroll", "enroll/oslo/x"} {
		dir := bare(t)
		r := open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())
		fetch(t, r)
		git(t, dir, "branch", branch, "main")
		_, err := r.Propose(t.Context(), proposal())
		var way *gitrepo.ErrBranchInTheWay
		if !errors.As(err, &way) || way.Branch != branch {
			t.Errorf("%s: %v", branch, err)
		}
		git(t, dir, "rev-parse", "--verify", "refs/heads/"+branch)
	}
}
