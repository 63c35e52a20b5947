package verify

import (
	"context"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// NoBaseError is a history in which the trust root finds nothing to begin with.
type NoBaseError struct{ Head tree.Hash }

func (e *NoBaseError) Error() string {
	return fmt.Sprintf("no commit on the own line of the inputs up to %s is signed by a key of the trust root's list policy, so nothing says where to begin: let one of those people sign a commit of the inputs (git commit -S --allow-empty), or give the daemon the right --trust-root", e.Head.Short())
}

// Base is where verification begins when nothing is known: the oldest commit on
// the head's line of first parents that a key of the trust root's list policy
// signed. The repository has no say in it. It is taken as it stands.
func (v *Verifier) Base(ctx context.Context, head tree.Hash) (tree.Hash, error) {
	keys := ringOf(v.reader.root.Policy(nil))
	var base tree.Hash
	for h := head; !h.IsZero(); {
		if err := ctx.Err(); err != nil {
			return base, err
		}
		c, err := v.commits.get(h)
		if err != nil {
			return base, err
		}
		raw, err := v.history.RawCommit(h)
		if err != nil {
			return base, fmt.Errorf("verify: %w", err)
		}
		if _, err := keys.signer(signed{h, raw, v.now(), v.commits.ancestor}); err == nil {
			base = h
		}
		if len(c.parents) == 0 {
			break
		}
		h = c.parents[0]
	}
	if base.IsZero() {
		return base, &NoBaseError{head}
	}
	return base, nil
}
