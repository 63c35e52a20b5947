//go:build e2e

package reservations

import (
	"context"
	"strings"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// ledgerLog is the history of requests on the ledger: its commits that change
// any are numbered from 1.
type ledgerLog struct {
	reserved, released map[string]int // by key
	count              []int          // operations of each commit
	upTo               map[string]int // the newest such commit up to any commit
}

// ledger reads it.
func (c *crowd) ledger(ctx context.Context) ledgerLog {
	c.t.Helper()
	git := func(args ...string) string {
		c.t.Helper()
		out, err := env.Git(ctx, c.rig.Git.RepoDir(rig.Repo), args...)
		if err != nil {
			c.t.Fatal(err)
		}
		return out
	}
	keys := map[string]string{} // by path
	for line := range strings.Lines(git("grep", "idempotency-key: ", "refs/heads/"+rig.Ledger, "--", "requests")) {
		place, key, _ := strings.Cut(strings.TrimSpace(line), "idempotency-key: ")
		_, path, _ := strings.Cut(place, ":")
		path, _, _ = strings.Cut(path, ":")
		keys[path] = strings.Trim(key, `"`)
	}
	l := ledgerLog{reserved: map[string]int{}, released: map[string]int{}, upTo: map[string]int{"": 0}}
	commit, numbered := "", false
	for line := range strings.Lines(git("log", "--reverse", "--format=commit %H", "--name-status", "--no-renames", rig.Ledger)) {
		what, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if hash, ok := strings.CutPrefix(what, "commit "); ok {
			commit, numbered = hash, false
			l.upTo[commit] = len(l.count)
			continue
		}
		key, request := keys[path]
		if !request {
			if strings.HasPrefix(path, "requests/") {
				c.t.Errorf("%s has left the ledger", path)
			}
			continue
		}
		if !numbered {
			l.count, numbered = append(l.count, 0), true
			l.upTo[commit] = len(l.count)
		}
		l.count[len(l.count)-1]++
		to := l.reserved
		if what == "M" {
			to = l.released
		}
		if to[key] != 0 {
			c.t.Errorf("%s is changed twice in the same way (%s)", key, path)
		}
		to[key] = len(l.count)
	}
	return l
}
