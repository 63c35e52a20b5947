package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/hands"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Vouched is who signed what stands on a ledger at a commit: the newest commit
// that a key in force of the trust root signed, where nobody else has changed
// generated files since. chain are the keys that fleet.yaml adds and drops. Why
// says why nobody's signature speaks for it, "" where one does. The history before
// is for Verify.
func Vouched(ctx context.Context, h History, head tree.Hash, root *trust.Root, chain []v1alpha1.Signer) (by, why string, err error) {
	r := newReader(h)
	keys, err := gitrepo.NewKeys(root.Ledger(chain))
	if err != nil {
		return "", "", fmt.Errorf("trust root: %w", err)
	}
	ancestor := func(a, b tree.Hash) (bool, error) { return r.ancestry.Holds(ctx, b, a) }
	for at := head; ; {
		if err := ctx.Err(); err != nil {
			return "", "", err
		}
		raw, err := h.Commit(at)
		if err != nil {
			return "", "", fmt.Errorf("read commit %s: %w", at.Short(), err)
		}
		c, err := r.commit(at)
		if err != nil {
			return "", "", err
		}
		key, cause := keys.SignedCommit(at, raw, c.Committer.When, ancestor)
		if why := hands.Twice(c.Message); why != "" {
			cause = errors.New(why)
		}
		if cause == nil {
			return key.Principal, "", nil
		}
		is, err := r.generated(c.Tree)
		if err != nil {
			return "", "", err
		}
		next := tree.Hash{}
		for _, p := range c.Parents {
			parent, err := r.commit(p)
			if err != nil {
				return "", "", err
			}
			was, err := r.generated(parent.Tree)
			if err != nil {
				return "", "", err
			}
			if was == is {
				next = p
				break
			}
		}
		if next.IsZero() {
			return "", fmt.Sprintf("commit %s by %s (%s) changed the ledger, and no key in force of the trust root signed it: %v",
				at.Short(), c.Committer, gitobj.Subject(c.Message), cause), nil
		}
		at = next
	}
}
