package verify

import (
	"context"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// NoBaseError is a history in which the trust root finds nothing to begin with.
type NoBaseError struct {
	Head tree.Hash
	// Closest is the signature that comes nearest to one that counts.
	Closest gitrepo.Closest
}

func (e *NoBaseError) Error() string {
	return fmt.Sprintf("no commit on the own line of the inputs up to %s is signed by a key in force of the trust root's list policy, so nothing says where to begin: let one of those people sign a commit of the inputs (git commit -S --allow-empty), or name the right --trust-root%s", e.Head.Short(), e.Closest.String())
}

// Base is where verification begins when nothing is known: the oldest commit on
// the head's line of first parents that a key of the trust root's list policy
// signed. The repository has no say in it. It is taken as it stands.
func (v *Verifier) Base(ctx context.Context, head tree.Hash) (tree.Hash, error) {
	keys := ringOf(v.reader.root.Policy(nil, nil))
	var base tree.Hash
	var closest gitrepo.Closest
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
		} else {
			closest.See(h, err)
		}
		if len(c.parents) == 0 {
			break
		}
		h = c.parents[0]
	}
	if base.IsZero() {
		return base, &NoBaseError{head, closest}
	}
	return base, nil
}
