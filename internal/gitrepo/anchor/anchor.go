package anchor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
)

// Commit is what is known of one.
type Commit struct {
	Parents []tree.Hash
	// By says who made it.
	By string
	// Ours: a daemon of the fleet made it. Number is its number on the ledger, zero
	// for none.
	Ours   bool
	Number uint64
	// Inputs is the commit of the inputs up to which all was verified; zero: it
	// names none.
	Inputs tree.Hash
}

// History is where commits are looked up.
type History struct {
	Commit func(tree.Hash) (Commit, error)
	// Within reports whether a commit is another or is made before it.
	Within func(a, b tree.Hash) (bool, error)
}

// Below are commits of ours that head contains, with a number and without, the
// highest numbers first; not those below a numbered one.
func (h History) Below(ctx context.Context, head tree.Hash) (numbered, plain []tree.Hash, err error) {
	numbers := map[tree.Hash]uint64{}
	err = ancestry.Walk(ctx, head, func(at tree.Hash) ([]tree.Hash, bool, error) {
		c, err := h.Commit(at)
		switch {
		case err != nil:
			return nil, false, fmt.Errorf("look for the newest signed commit: %w", err)
		case c.Ours && c.Number > 0:
			numbers[at] = c.Number
			numbered = append(numbered, at)
			return nil, false, nil
		case c.Ours:
			plain = append(plain, at)
		}
		return c.Parents, false, nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(numbered, func(a, b tree.Hash) int { return cmp.Compare(numbers[b], numbers[a]) })
	return numbered, plain, nil
}

// Newest is the one of a list that contains all others. rivals are two of which
// neither contains the other, where there is none.
func (h History) Newest(list []tree.Hash) (top tree.Hash, rivals []tree.Hash, err error) {
	top = list[0]
	for _, next := range list[1:] {
		in, err := h.Within(next, top)
		if err != nil {
			return top, nil, err
		}
		if in {
			continue
		}
		if in, err = h.Within(top, next); err != nil {
			return top, nil, err
		}
		if !in {
			return tree.Hash{}, []tree.Hash{top, next}, nil
		}
		top = next
	}
	return top, nil, nil
}

// Inputs is the commit of the inputs up to which all was verified, by the newest
// commit of ours below head. It is zero where none names one, and where it is not
// known which is the newest.
func (h History) Inputs(ctx context.Context, head tree.Hash) (tree.Hash, error) {
	numbered, list, err := h.Below(ctx, head)
	if err != nil {
		return tree.Hash{}, err
	}
	if len(numbered) > 0 {
		top, rivals, err := h.Newest(numbered)
		if err != nil || rivals != nil {
			return tree.Hash{}, err
		}
		list = append([]tree.Hash{top}, list...)
	}
	for _, at := range list {
		if c, err := h.Commit(at); err != nil || !c.Inputs.IsZero() {
			return c.Inputs, err
		}
	}
	return tree.Hash{}, nil
}
