package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Four daemons on one real repository, each with contracts of its own and a
// counter that all of them increment: everything lands, no update is lost.
func TestFourDaemonsOnOneRepository(t *testing.T) {
	for _, c := range []struct {
		name    string
		commits int
		mod     func(*gitrepo.Options)
		url     func(dir string) string
	}{
		{"two refs over file", 25, func(*gitrepo.Options) {}, func(dir string) string { return "file://" + dir }},
		{"one ref over http", 8, oneBranch, func(dir string) string { return serveGit(t, filepath.Dir(dir)).URL + "/fleet.git" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				c.commits /= 5
			}
			dir := bare(t)
			url := c.url(dir)
			const daemons = 4
			var wg sync.WaitGroup
			errs := make(chan error, daemons)
			for d := range daemons {
				o := options(c.mod, func(o *gitrepo.Options) {
					o.Dir, o.Tries, o.Now = t.TempDir(), 100, time.Now
					o.Sleep, o.Rand = nil, rand.New(rand.NewPCG(1, uint64(d))).Float64
					o.Backoff = 5 * time.Millisecond
				})
				r := open(t, dial(t, url, gitrepo.Auth{}), o)
				wg.Go(func() { errs <- countUp(r, d, c.commits) })
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				if err != nil {
					t.Error(err)
				}
			}
			branch := options(c.mod).Ledger
			if got := git(t, dir, "show", branch+":contracts/shared/count"); got != fmt.Sprint(daemons*c.commits) {
				t.Errorf("count: got %s, want %d", got, daemons*c.commits)
			}
			files := git(t, dir, "ls-tree", "-r", "--name-only", branch, "contracts/")
			if got := len(strings.Split(files, "\n")); got != daemons*c.commits+1 {
				t.Errorf("%d files, want %d", got, daemons*c.commits+1)
			}
			if got := git(t, dir, "rev-list", "--count", "--grep=^Plan:", branch); got != fmt.Sprint(daemons*c.commits) {
				t.Errorf("%s commits, want %d", got, daemons*c.commits)
			}
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// countUp commits n contracts, each together with the counter's next value.
func countUp(r *gitrepo.Repo, daemon, n int) error {
	ctx := context.Background()
	for i := 0; i < n; {
		h, err := r.Fetch(ctx)
		if err != nil {
			return err
		}
		count := 0
		if b, err := h.Ledger.Tree.ReadFile("contracts/shared/count", 0); err == nil {
			if _, err := fmt.Sscan(string(b), &count); err != nil {
				return err
			}
		}
		it := contract(fmt.Sprint("d", daemon), fmt.Sprint("c", i), "x")
		it.Puts["contracts/shared/count"] = fmt.Append(nil, count+1)
		q := independent(h, it)
		q.When = time.Now()
		q.Market = tree.NewMemory().Build(map[string][]byte{"paris": fmt.Append(nil, daemon, i)})
		_, err = r.Commit(ctx, q)
		var replan *gitrepo.ErrReplan
		switch {
		case errors.As(err, &replan):
		case err != nil:
			return err
		default:
			i++
		}
	}
	return nil
}

// Independent writers need no new plan: the same, each on files of its own.
func TestIndependentWritersAllLand(t *testing.T) {
	dir := bare(t)
	commits := 50
	if testing.Short() {
		commits = 10
	}
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for d := range 4 {
		r := open(t, dial(t, dir, gitrepo.Auth{}), options(func(o *gitrepo.Options) {
			o.Tries, o.Sleep, o.Backoff = 200, nil, 2*time.Millisecond
		}))
		h := fetch(t, r)
		wg.Go(func() {
			for i := range commits {
				// Always on the head of the start: the preconditions still hold.
				if _, err := r.Commit(context.Background(), independent(h, contract(fmt.Sprint("d", d), fmt.Sprint("c", i), "x"))); err != nil {
					errs <- fmt.Errorf("daemon %d, commit %d: %w", d, i, err)
					return
				}
			}
			errs <- nil
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got := git(t, dir, "rev-list", "--count", "ledger"); got != fmt.Sprint(4*commits) {
		t.Errorf("%s commits, want %d", got, 4*commits)
	}
	if got := len(strings.Split(git(t, dir, "ls-tree", "-r", "--name-only", "ledger"), "\n")); got != 4*commits {
		t.Errorf("%d files, want %d", got, 4*commits)
	}
	git(t, dir, "fsck", "--strict", "--no-dangling")
}

// Trees handed out are read by any number of goroutines while commits and
// fetches go on.
func TestReadersWhileWriting(t *testing.T) {
	dir := bare(t)
	r := open(t, dial(t, dir, gitrepo.Auth{}), options(func(o *gitrepo.Options) { o.Dir, o.FlushBytes, o.MaxPacks = t.TempDir(), 1, 3 }))
	h := fetch(t, r)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := h.Inputs.Tree.ReadFile("intents/vision/a.yaml", 0); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	for i := range 15 {
		commit(t, r, request(fetch(t, r), contract("t", fmt.Sprint("c", i), "x")))
	}
	close(stop)
	wg.Wait()
}
