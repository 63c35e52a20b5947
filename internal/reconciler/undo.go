package reconciler

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// maxRestored bounds a file that is restored, in bytes.
const maxRestored = 16 << 20

// undoRequest puts back what stood there before every foreign edit. Its message
// names who edited what, and where.
func (r *Reconciler) undoRequest(in *inputs, at v1alpha1.Time) (gitrepo.Request, error) {
	now := in.heads.Ledger.Tree
	item := gitrepo.Item{Key: "undo", Puts: map[string][]byte{}}
	req := r.newRequest(in, tree.Hash{}, "undo", at)
	req.Reads = []string{}
	seen := map[string]bool{}
	var who gitrepo.Commit
	for _, e := range in.foreign {
		if seen[e.Path] {
			continue
		}
		seen[e.Path], who = true, e.Commit
		if e.Broken != "" {
			// Our commit stands on what was before: on the very same files, where it is
			// not its tree that says nothing, but that it merges too many.
			req.Empty = true
			continue
		}
		if k := e.Was.Kind; e.Was.Hash.IsZero() || k != tree.File && k != tree.Executable { // links are none of ours
			item.Deletes = append(item.Deletes, e.Path)
			continue
		}
		content, err := now.Store.File(e.Was.Hash, maxRestored)
		if err != nil {
			return req, fmt.Errorf("undo foreign edits: restore %s: %w", e.Path, err)
		}
		item.Puts[e.Path] = content
	}
	item.Line = fmt.Sprintf("undo edits of generated files by %s in %s: %s",
		who.Author.String(), who.Hash.Short(), foreignList(in.foreign))
	if b := in.foreign[0]; b.Broken != "" {
		item.Line = fmt.Sprintf("undo commit %s by %s, whose tree is broken: %s", b.Commit.Hash.Short(), b.Commit.Author.String(), brokenIn(b))
	}
	req.Items = []gitrepo.Item{item}
	return req, nil
}

// brokenIn says where a commit's tree is broken, and why.
func brokenIn(e gitrepo.ForeignEdit) string {
	if e.Path == "" {
		return e.Broken
	}
	return e.Path + ": " + e.Broken
}
