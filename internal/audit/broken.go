package audit

import (
	"errors"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// said is what a commit says of the ledger and of the inputs: its own tree, or,
// where that is broken, what its first parent says.
type said struct {
	ledger, inputs tree.Hash
	broken         *tree.BrokenError
}

// inputNames are what people write at the top of a fleet repo.
var inputNames = []string{"fleet.yaml", "clusters", "tenants", "flavors", "prices", "intents", "bases", "pki", "overlays"}

// says is what a commit says. Histories of any length may be broken, so that it
// goes back to what is known without recursion.
func (r *reader) says(c *Commit) (said, error) {
	type step struct {
		c              *Commit
		ledger, inputs *tree.BrokenError
	}
	var open []step
	var base said
	for at := c; ; {
		if s, ok := r.said[at.Hash]; ok {
			base = s
			break
		}
		st, err := step{c: at}, error(nil)
		if st.ledger = tree.CheckParents(len(at.Parents)); st.ledger != nil {
			st.inputs = st.ledger
		} else if st.ledger, err = r.broken(at.Root, generated); err != nil {
			return base, err
		} else if st.inputs, err = r.broken(at.Root, inputNames); err != nil {
			return base, err
		}
		open = append(open, st)
		if st.ledger == nil && st.inputs == nil || len(at.Parents) == 0 {
			break
		}
		if at, err = r.stored(at.Parents[0]); err != nil {
			return base, err
		}
	}
	if len(r.said) > 1<<16 {
		clear(r.said)
	}
	for _, st := range slices.Backward(open) {
		if st.ledger == nil {
			base.ledger = st.c.Root
		}
		if st.inputs == nil {
			base.inputs = st.c.Root
		}
		base.broken = st.ledger
		r.said[st.c.Hash] = base
	}
	return base, nil
}

// broken is why a tree says nothing under some names, nil when it is whole.
func (r *reader) broken(root tree.Hash, names []string) (*tree.BrokenError, error) {
	_, err := r.vetter.Whole(r.tree(root), names)
	var broken *tree.BrokenError
	if errors.As(err, &broken) {
		return broken, nil
	}
	return nil, err
}
