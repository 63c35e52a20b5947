package audit

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// begin takes a commit's ledger as it stands.
func (v *verifier) begin(ctx context.Context, from tree.Hash) error {
	told := len(v.report.Violations)
	c, err := v.commit(from)
	if err != nil {
		return err
	}
	for h := from; v.strict() && !h.IsZero() && v.in.root == nil; { // whether the root held already
		if v.c, err = v.stored(h); err != nil {
			return err
		}
		if err := v.underRoot(ctx); err != nil {
			return err
		}
		h = tree.Hash{}
		if len(v.c.Parents) > 0 {
			h = v.c.Parents[0]
		}
	}
	v.in.base = false
	v.c = c
	s, _, err := v.in.acted(ctx, c)
	if err != nil {
		return err
	}
	own, err := v.ours(ctx, s, s != nil)
	if err != nil {
		return err
	}
	if own {
		v.made = c.Committer.When
	}
	v.numbered(s)
	v.report.Signers, v.report.Unsigned, v.report.BeforeRoot, v.report.Violations = []Signed{}, 0, 0, v.report.Violations[:told]
	changes, err := v.changes(tree.Hash{}, c.Tree)
	if err != nil {
		return err
	}
	_, err = v.take(v.reader, changes)
	return err
}
