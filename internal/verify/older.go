package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Key names what people write in a root tree: its top-level entries but the
// generated directories. Where inputs and ledger share a branch, commits of the
// daemon leave it as it is. Entries that stand for others may be added.
func Key(root tree.Tree, beside ...tree.Entry) (tree.Hash, error) {
	entries, err := root.Entries()
	if err != nil {
		return tree.Hash{}, fmt.Errorf("list the inputs: %w", err)
	}
	kept := slices.DeleteFunc(slices.Clone(entries), func(e tree.Entry) bool {
		return e.Name == ledger.Root || e.Name == manifests.Root || e.Name == ledger.RequestsRoot || e.Name == v1alpha1.SourcesRoot
	})
	kept = append(kept, beside...)
	tree.Sort(kept)
	return tree.DirHash(kept), nil
}

// maxOlder bounds in how many versions of the inputs the last good version of a
// broken file is looked for, maxWalked how far back, in commits.
const (
	maxOlder  = 100
	maxWalked = 2000
)

// Older are versions of the inputs in which to look for the last good one of a
// broken file: those of some commits, and then back along their first parents.
func (v *Verifier) Older(next ...tree.Hash) ([]tree.Tree, error) {
	var out []tree.Tree
	seen := map[tree.Hash]bool{}
	for walked := 0; len(next) > 0 && len(out) < maxOlder && walked < maxWalked; walked++ {
		h := next[0]
		next = next[1:]
		if h.IsZero() {
			continue
		}
		c, err := v.commits.get(h)
		if err != nil {
			return nil, fmt.Errorf("read older inputs: %w", err)
		}
		t, err := v.history.Tree(h)
		if err != nil {
			return nil, fmt.Errorf("read older inputs: %w", err)
		}
		key, err := Key(t)
		if err == nil && !seen[key] {
			seen[key] = true
			var broken *tree.BrokenError
			if broken, err = v.commits.whole(c); err == nil && broken == nil {
				if t, err = v.commits.bounded(h); err == nil {
					out = append(out, t)
				}
			}
		}
		if err != nil && !errors.As(err, new(*tree.BrokenError)) {
			return nil, fmt.Errorf("read older inputs: %w", err)
		}
		if len(c.parents) > 0 {
			next = append(next, c.parents[0])
		}
	}
	return out, nil
}
