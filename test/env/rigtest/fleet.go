// Package rigtest ties a rig to a test: what is waited for and judged in the
// same words by every end-to-end suite that runs a whole fleet.
//
// Only tests import it. A Fleet belongs to its test's goroutine, because it ends
// the test when something does not come.
package rigtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// patience bounds what is waited for, on a busy machine. Liqo doubles its
// pause after each failure, so that after an API server's restart its next try
// may be minutes away.
const patience = 5 * time.Minute

// Fleet is a rig that runs for a test.
type Fleet struct {
	*rig.Rig
	t   *testing.T
	ctx context.Context
}

// Start starts a rig until the test ends, and calls logs when it has failed.
func Start(ctx context.Context, t *testing.T, o rig.Options, logs func(*Fleet)) *Fleet {
	t.Helper()
	o.Lent = true
	r, err := rig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{Rig: r, t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			logs(f)
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	return f
}

// Put commits and pushes an intent of a tenant.
func (f *Fleet) Put(tenant, name, content string) {
	f.t.Helper()
	if _, err := f.Platform.CommitAndPush(f.ctx, "Ask for "+name, map[string]string{"intents/" + tenant + "/" + name + ".yaml": content}); err != nil {
		f.t.Fatal(err)
	}
}

// Remove takes an intent back.
func (f *Fleet) Remove(tenant, name string) {
	f.t.Helper()
	if _, err := f.Platform.Remove(f.ctx, "Give up "+name, "intents/"+tenant+"/"+name+".yaml"); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Platform.Push(f.ctx); err != nil {
		f.t.Fatal(err)
	}
}

// Eventually waits until a condition is not an error any more.
func (f *Fleet) Eventually(what string, condition func() error) {
	f.t.Helper()
	waited, err := env.Until(f.ctx, patience, condition)
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
	f.t.Logf("%s: %s", what, waited.Round(time.Millisecond))
}

// History judges the remote's whole history.
func (f *Fleet) History() *checker.Result {
	f.t.Helper()
	st := filesystem.NewStorage(osfs.New(f.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault())
	res, err := checker.Check(st, rig.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// Sound fails the test for every invariant that was broken.
func (f *Fleet) Sound() {
	f.t.Helper()
	for _, v := range f.History().Violations {
		f.t.Errorf("invariant broken in %s", v)
	}
}

// Phases are the contracts of an intent at the remote's head, by name.
func (f *Fleet) Phases(tenant, intent string) map[string]string {
	f.t.Helper()
	res, out := f.History(), map[string]string{}
	for _, list := range []map[string]string{res.Held, res.Ended} {
		for contract, phase := range list {
			if strings.HasPrefix(contract, tenant+"-"+intent+"-") {
				out[contract] = phase
			}
		}
	}
	return out
}

// Contract waits for a contract of an intent in one of these phases and names
// it.
func (f *Fleet) Contract(tenant, intent string, phases ...string) string {
	f.t.Helper()
	found := ""
	f.Eventually(tenant+"/"+intent+" is "+strings.Join(phases, " or "), func() error {
		got := f.Phases(tenant, intent)
		for name, p := range got {
			if slices.Contains(phases, p) {
				found = name
				return nil
			}
		}
		return fmt.Errorf("its contracts are %v", got)
	})
	return found
}

// Log shows the end of a file.
func (f *Fleet) Log(path string, end int) {
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Log(err)
		return
	}
	f.t.Logf("%s:\n%s", path, text[max(0, len(text)-end):])
}
