package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
)

// UnderRoot is the newest commit up to head that a daemon with a trust root wrote:
// it has a signature and the trailer Fleet. Zero: there is none. Nothing is judged,
// so whoever may push can make a commit look so.
func (r *Repo) UnderRoot(ctx context.Context, head tree.Hash) (found tree.Hash, err error) {
	err = r.walk(ctx, head, func(c Commit) (parents []tree.Hash, done bool, err error) {
		if c.Signed && c.Trailer(FleetTrailer) != "" {
			found = c.Hash
		}
		return c.Parents, !found.IsZero(), nil
	})
	return found, err
}

// OtherFleetError is a ledger that another fleet's daemon writes than the trust
// root's, with the same keys.
type OtherFleetError struct {
	Ref    string
	Commit tree.Hash
	// Fleet that the ledger's newest commit names, and Own that the trust root does.
	Fleet, Own string
}

func (e *OtherFleetError) Error() string {
	return fmt.Sprintf("%s is the ledger of fleet %s (commit %s, signed by a key of the trust root), and the trust root says %s: write `fleetID: %s` in it, or use another branch",
		e.Ref, e.Fleet, e.Commit.Short(), e.Own, e.Fleet)
}

// OfFleet is an *OtherFleetError where the newest commit of a ledger that a key in
// force signed names another fleet, and no older one names ours: one of another fleet
// that somebody put on a ledger of ours is a foreign edit. own: one names ours.
func (r *Repo) OfFleet(ctx context.Context, head tree.Hash) (own bool, err error) {
	id := *r.identity.Load()
	if !id.Signed || id.Fleet == "" {
		return true, nil
	}
	var other *OtherFleetError
	err = r.walk(ctx, head, func(c Commit) (parents []tree.Hash, done bool, err error) {
		branch, _, _ := strings.Cut(c.Trailer(LedgerTrailer), " ")
		if !c.Signed || branch == "" || Branch(branch) != r.ledgerRef {
			return c.Parents, false, nil
		}
		signed, err := r.SignedBy(c.Hash, id.Trusted)
		if err != nil || !signed {
			return c.Parents, false, err
		}
		switch fleet := c.Trailer(FleetTrailer); {
		case fleet == "":
			return nil, false, nil // from before the trust root, with all below
		case fleet == id.Fleet:
			own = true
			return nil, true, nil
		case other == nil:
			other = &OtherFleetError{Ref: r.ledgerRef, Commit: c.Hash, Fleet: fleet, Own: id.Fleet}
		}
		return c.Parents, false, nil
	})
	if err == nil && other != nil && !own {
		err = other
	}
	return own, err
}

// walk visits a commit and its ancestors as ancestry.Walk does, zero having none.
func (r *Repo) walk(ctx context.Context, head tree.Hash, visit func(Commit) (parents []tree.Hash, done bool, err error)) error {
	if head.IsZero() {
		return nil
	}
	return ancestry.Walk(ctx, head, func(h tree.Hash) ([]tree.Hash, bool, error) {
		c, err := r.info(h)
		if err != nil {
			return nil, false, fmt.Errorf("look for the fleet of the ledger: %w", err)
		}
		return visit(c)
	})
}
