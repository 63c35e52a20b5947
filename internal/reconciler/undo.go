package reconciler

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// maxRestored bounds a file that is restored, in bytes.
const maxRestored = 16 << 20

// undoRequest puts back what stood there before every foreign edit. Its message
// names who edited what, and where.
func undoRequest(in *inputs, at v1alpha1.Time) (gitrepo.Request, error) {
	now := in.heads.Ledger.Tree
	item := gitrepo.Item{Key: "undo", Puts: map[string][]byte{}}
	req := gitrepo.Request{
		Base: in.heads.Ledger.Commit.Hash, Inputs: in.heads.Inputs.Commit.Hash, Verified: in.clean, When: at.Time,
		Trailers: []string{
			"Inputs: " + in.heads.Inputs.Commit.Hash.String(),
			"Market: " + tree.Hash{}.String(),
			"Plan: undo",
			"Now: " + at.UTC().Format(time.RFC3339),
		},
		Reads: []string{},
	}
	seen := map[string]bool{}
	var who gitrepo.Commit
	for _, e := range in.foreign {
		if seen[e.Path] {
			continue
		}
		seen[e.Path], who = true, e.Commit
		if e.Was.Hash.IsZero() {
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
	req.Items = []gitrepo.Item{item}
	return req, nil
}
