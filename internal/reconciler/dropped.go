package reconciler

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// planAccept is the Plan of a commit that changes nothing: its trailers Dropped name
// the heads that an operator let go of.
const planAccept = "accept"

// recordDropped names on the ledger, in a commit of its own, what an operator let go
// of by --accept-rewrite, before anything is decided after it. Where this daemon
// writes no commits by itself the next one names it.
func (r *Reconciler) recordDropped(ctx context.Context, in *inputs) (done bool, out Outcome, err error) {
	if dropping, err := r.opts.Repo.Dropping(); err != nil || !dropping || r.shadow(in) || r.offers(in) {
		return err != nil, out, err
	}
	req := r.newRequest(in, tree.Hash{}, planAccept, r.now(in))
	req.Empty, req.Reads = true, []string{}
	req.Items = []gitrepo.Item{{Key: planAccept, Line: "accept a rewritten history"}}
	res, err := r.opts.Repo.Commit(ctx, req)
	r.ask.Store(true)
	var replan *gitrepo.ErrReplan
	var busy *gitrepo.ErrBusy
	switch {
	case errors.As(err, &replan), errors.As(err, &busy):
		return true, Outcome{Again: true}, ctx.Err()
	case err != nil:
		return true, out, fmt.Errorf("record the accepted rewrite: %w", err)
	}
	traced.Committed(ctx, r.opts.Log, res.Commits)
	return true, Outcome{Committed: res.Commits, Again: len(res.Commits) > 0}, nil
}
