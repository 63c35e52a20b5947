package gitrepo

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// recorded is what the ledger notes of the inputs, at one head of it and by one
// identity.
type recorded struct {
	head   tree.Hash
	by     *Identity
	inputs tree.Hash
}

// Recorded is the commit of the inputs up to which all was verified, by the newest
// commit of ours on the ledger; zero: none names one. It must be in the inputs'
// branch, and tells its own line from what was merged. It is no more: a key of the
// list ledger gives no rights, so what it names is verified like all else.
func (r *Repo) Recorded(ctx context.Context) (tree.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recordedInputs(ctx)
}

// recordedInputs is Recorded. The caller holds mu.
func (r *Repo) recordedInputs(ctx context.Context) (tree.Hash, error) {
	id, head := r.identity.Load(), r.refs[r.ledgerRef]
	if !id.Signed || head.IsZero() {
		return tree.Hash{}, nil
	}
	if r.recorded.by == id && r.recorded.head == head {
		return r.recorded.inputs, nil
	}
	at, err := r.anchors().Inputs(ctx, head)
	if err == nil {
		r.recorded = recorded{head, id, at}
	}
	return at, err
}

// bornOut tells whether the ledger bears out what the remote notes as accepted: of
// the ledger a commit of ours that stood on it, of the inputs one up to which the
// ledger says that all was verified. That somebody whom the trust root lists signed
// a commit is not enough: people sign drafts, and daemons offers and the ledgers of
// other fleets.
func (r *Repo) bornOut(ctx context.Context, ref string, h tree.Hash) (bool, error) {
	if ref == acceptedInputsRef {
		at, err := r.recordedInputs(ctx)
		if err != nil || at.IsZero() {
			return false, err
		}
		return r.isAncestor(h, at)
	}
	ours, err := r.byUs(*r.identity.Load(), h)
	if err != nil || !ours {
		return false, err
	}
	c, err := r.info(h)
	if err != nil {
		return false, err
	}
	return r.hasNumber(c, c.Trailer(LedgerTrailer) == "")
}
