package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// inputs is what the inputs of a commit say to the round: what was verified of
// them, the last good version of what is broken, and the requests that the
// ledger has with the commit.
func (r *Replayer) inputs(ctx context.Context, h tree.Hash, c *commit, rec *Record, now time.Time) (*fleet.Fleet, error) {
	accepted := tree.Hash{}
	if rec.Accepted != "" {
		var err error
		if accepted, err = tree.ParseHash(rec.Accepted); err != nil {
			return nil, fmt.Errorf("what the round knew: accepted: %w", err)
		}
	}
	kept := tree.Tree{}
	if len(rec.Kept) > 0 {
		files := map[string][]byte{}
		for path, text := range rec.Kept {
			files[path] = []byte(text)
		}
		kept = tree.NewMemory().Build(files)
	}
	verified := func(older ...tree.Tree) (*verify.State, error) {
		return verify.New(commits{r}, func() time.Time { return now }).Verify(ctx, accepted, h, older)
	}
	state, err := verified(kept)
	if err != nil || state.Signed { // who might sign may stand in a file that is broken
		from := accepted
		if from.IsZero() {
			from = h
		}
		older, err := r.older(from)
		if err != nil {
			return nil, err
		}
		if state, err = verified(append([]tree.Tree{kept}, older...)...); err != nil {
			return nil, fmt.Errorf("verify the inputs at %s: %w", h.Short(), err)
		}
	}
	f, err := fleet.NewReader().ReadAll(ctx, fleet.Sources{Inputs: state.Tree, Ledger: tree.Tree{Store: r.History, Root: c.Tree}, Older: []tree.Tree{kept}})
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", h.Short(), err)
	}
	return f, nil
}

// Bounds of looking for the last good version of a broken file, as the daemon
// has them.
const (
	maxOlder  = 100
	maxWalked = 2000
)

// older are the inputs of a commit and of those before it, along the first
// parents.
func (r *Replayer) older(h tree.Hash) ([]tree.Tree, error) {
	var out []tree.Tree
	seen := map[tree.Hash]bool{}
	for walked := 0; !h.IsZero() && len(out) < maxOlder && walked < maxWalked; walked++ {
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}
		t := tree.Tree{Store: r.History, Root: c.Tree}
		entries, err := t.Entries()
		if err != nil {
			return nil, fmt.Errorf("read older inputs: %w", err)
		}
		key := tree.DirHash(slices.DeleteFunc(slices.Clone(entries), func(e tree.Entry) bool {
			return e.Name == ledger.Root || e.Name == manifests.Root || e.Name == ledger.RequestsRoot
		}))
		if !seen[key] {
			seen[key] = true
			out = append(out, t)
		}
		if len(c.Parents) == 0 {
			return out, nil
		}
		h = c.Parents[0]
	}
	return out, nil
}

// commits is the history as the verifier reads it.
type commits struct{ r *Replayer }

// RawCommit implements verify.History.
func (c commits) RawCommit(h tree.Hash) ([]byte, error) { return c.r.History.Commit(h) }

// Tree implements verify.History.
func (c commits) Tree(h tree.Hash) (tree.Tree, error) { return c.r.tree(h) }
