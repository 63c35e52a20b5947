package verify

import (
	"context"
	"errors"
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

// BaseThrough is Base of a commit that is known to have been the branch's head, and
// lets the branch's own line go through it. Who merges has the first parent in hand,
// and with it the line: one that left before a key was taken away would be judged as
// if it never had been. A zero commit, or one that the head does not hold, is Base of
// the head.
func (v *Verifier) BaseThrough(ctx context.Context, via, head tree.Hash) (tree.Hash, error) {
	v.via = tree.Hash{}
	if !via.IsZero() {
		if in, err := v.commits.graph.Holds(ctx, head, via); err != nil {
			return tree.Hash{}, err
		} else if in {
			base, err := v.Base(ctx, via)
			if err == nil {
				v.via = via
			}
			if !errors.As(err, new(*NoBaseError)) {
				return base, err
			}
		}
	}
	return v.Base(ctx, head)
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
