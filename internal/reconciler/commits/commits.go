// Package commits says what a commit of decisions is called, and names what it decides.
// It is pure; the reconciler calls it.
package commits

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// verbs are what a line can begin with, with what a sum calls it, in the order
// of a sum.
var verbs = []struct{ verb, done string }{
	{"place", "placed"}, {"resize", "resized"}, {"move", "moved"}, {"release", "released"}, {"preempt", "preempted"},
	{"queue", "queued"}, {"refuse", "refused"}, {"suspend", "suspended"},
	{"peering", "peering"}, {"active", "active"}, {"degraded", "degraded"}, {"reserved", "reserved"}, {"releasing", "draining"}, {"drained", "drained"},
	{"released", "ended"}, {"expired", "expired"}, {"preempted", "displaced"}, {"failed", "failed"},
	{"done", "done"}, {"update", "updated"}, {"keep", "noted"}, {"retire", "retired"}, {"undo", "undone"},
}

// Subject is "3 placed, 1 released, 2 queued".
func Subject(counts map[string]int) string {
	var parts []string
	rest := maps.Clone(counts)
	for _, v := range verbs {
		if n := counts[v.verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.done))
			delete(rest, v.verb)
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(rest)) {
		parts = append(parts, fmt.Sprintf("%d %s", rest[verb], verb))
	}
	return strings.Join(parts, ", ")
}

// Digest names what is decided for these items: what they change on a parent
// (ledger.Digest). A plan that the remote takes in parts has one for each.
func Digest(parent tree.Tree, items []gitrepo.Item) (string, error) {
	files := map[string]tree.Hash{}
	note := func(path string, is tree.Hash) error {
		was, err := parent.Find(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("digest of the plan: %w", err)
		}
		if was.Hash != is {
			files[path] = is
		}
		return nil
	}
	written := map[string]bool{}
	for _, it := range items {
		for path, content := range it.Puts {
			written[path] = true
			if err := note(path, tree.BlobHash(content)); err != nil {
				return "", err
			}
		}
	}
	for _, it := range items {
		for _, path := range it.Deletes {
			if written[path] {
				continue
			}
			if err := note(path, tree.Hash{}); err != nil {
				return "", err
			}
		}
	}
	return ledger.Digest(files), nil
}
