package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// UnderRoot is the newest commit up to head that a daemon with a trust root wrote:
// it has a signature and the trailer Fleet. Zero: there is none. Nothing is judged,
// so whoever may push can make a commit look so.
func (r *Repo) UnderRoot(ctx context.Context, head tree.Hash) (found tree.Hash, err error) {
	err = r.walk(ctx, head, func(c Commit) (stop, below bool, err error) {
		if c.Signed && c.Trailer(FleetTrailer) != "" {
			found = c.Hash
		}
		return !found.IsZero(), true, nil
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
	err = r.walk(ctx, head, func(c Commit) (stop, below bool, err error) {
		branch, _, _ := strings.Cut(c.Trailer(LedgerTrailer), " ")
		if !c.Signed || branch == "" || Branch(branch) != r.ledgerRef {
			return false, true, nil
		}
		signed, err := r.SignedBy(c.Hash, id.Trusted)
		if err != nil || !signed {
			return false, true, err
		}
		switch fleet := c.Trailer(FleetTrailer); {
		case fleet == "":
			return false, false, nil // from before the trust root, with all below
		case fleet == id.Fleet:
			own = true
			return true, false, nil
		case other == nil:
			other = &OtherFleetError{Ref: r.ledgerRef, Commit: c.Hash, Fleet: fleet, Own: id.Fleet}
		}
		return false, true, nil
	})
	if err == nil && other != nil && !own {
		err = other
	}
	return own, err
}

// walk visits a commit and its ancestors, nearest first, until visit stops. What is
// below a commit is visited where it says so.
func (r *Repo) walk(ctx context.Context, head tree.Hash, visit func(Commit) (stop, below bool, err error)) error {
	if head.IsZero() {
		return nil
	}
	seen := map[tree.Hash]bool{head: true}
	for queue := []tree.Hash{head}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := r.info(queue[0])
		if err != nil {
			return fmt.Errorf("look for the fleet of the ledger: %w", err)
		}
		stop, below, err := visit(c)
		if err != nil || stop {
			return err
		}
		if !below {
			continue
		}
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return nil
}
