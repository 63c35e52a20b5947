package reconciler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// A commit that answered several waits until as many are back, and not for
// ever; one client alone is not waited for.
func TestLinger(t *testing.T) {
	cases := map[string]struct {
		told, back int
		want       time.Duration
	}{
		"one alone":       {1, 0, 0},
		"all come back":   {3, 3, 4 * time.Millisecond}, // the last of them
		"one stays away":  {3, 2, lingering},
		"more than there": {2, 3, 2 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{Repo: emptyRepo(t)})
				for i := range c.back {
					time.AfterFunc(time.Duration(i)*2*time.Millisecond, func() {
						if err := r.intake.put(&waiter{ctx: context.Background(), done: make(chan verdict, 1)}); err != nil {
							t.Error(err)
						}
						r.Wake()
					})
				}
				start := time.Now()
				r.linger(context.Background(), c.told, lingering)
				if took := time.Since(start); took != c.want {
					t.Errorf("waited %s, want %s", took, c.want)
				}
			})
		})
	}
}

// emptyRepo is a repository without a commit.
func emptyRepo(t *testing.T) *gitrepo.Repo {
	t.Helper()
	repo, err := gitrepo.Open(t.Context(), memremote.New(), gitrepo.Options{Inputs: "main", Ledger: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}
