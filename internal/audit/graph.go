package audit

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
)

// graph knows commits by their place in history.
type graph struct {
	*reader
	*ancestry.Graph
}

func newGraph(r *reader) *graph { return &graph{r, r.ancestry} }

// parents reads those of a commit.
func (r *reader) parents(h tree.Hash) ([]tree.Hash, error) {
	c, err := r.stored(h)
	if err != nil {
		return nil, err
	}
	return c.Parents, nil
}

// Holds reports whether a commit is another or one of its ancestors; one that is
// not in the history is not.
func Holds(ctx context.Context, h History, of, commit tree.Hash) (bool, error) {
	if _, err := h.Commit(commit); err != nil {
		return false, nil //nolint:nilerr // it is not there
	}
	return newGraph(newReader(h)).Holds(ctx, of, commit)
}
