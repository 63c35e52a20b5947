package reconciler

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// decideWithLeave is the plan of a world and the world that it was made of: where
// ends are held back that the operator looked at on an earlier commit of the
// inputs (Options.AllowEnds), they are allowed.
func (r *Reconciler) decideWithLeave(ctx context.Context, in *inputs, w planner.World) (planner.World, *planner.Plan) {
	plan := r.decide(w)
	if plan.HeldBack != "" && r.allowedBefore(ctx, in, w) {
		w.AllowEnds = true
		plan = r.decide(w)
	}
	r.sayHeldBack(plan)
	return w, plan
}

// allowedBefore reports whether AllowEnds names an ancestor of the inputs on which
// all would end that ends now.
func (r *Reconciler) allowedBefore(ctx context.Context, in *inputs, w planner.World) bool {
	then, known := r.worldOfLeave(ctx, in)
	return known && r.among(planner.Ends(then), planner.Ends(w))
}

// among reports whether all that end now end then too; both are sorted.
func (r *Reconciler) among(then, now []string) bool {
	for _, name := range now {
		if _, known := slices.BinarySearch(then, name); !known {
			r.opts.Log.Warn("more would end than on the commit that ends are allowed on", "commit", r.opts.AllowEnds.Short(), "contract", name)
			return false
		}
	}
	return true
}

// worldOfLeave is the round's world with the inputs of the commit that AllowEnds names,
// where that is an ancestor of theirs.
func (r *Reconciler) worldOfLeave(ctx context.Context, in *inputs) (w planner.World, known bool) {
	seen, head := r.opts.AllowEnds, in.heads.Inputs.Commit.Hash
	if seen.IsZero() || seen == head {
		return w, false
	}
	log := r.opts.Log.With("commit", seen.Short(), "head", head.Short())
	if before, err := r.opts.Repo.IsAncestor(seen, head); err != nil || !before {
		log.Warn("the commit that ends are allowed on is not among the inputs", "error", err)
		return w, false
	}
	given := r.given
	given.Inputs = seen.String()
	t, err := r.opts.Repo.Tree(seen)
	if err == nil {
		given.Fleet, err = fleet.NewReader().ReadAll(ctx, fleet.Sources{Inputs: t, Ledger: in.heads.Ledger.Tree})
	}
	if err != nil {
		log.Warn("the commit that ends are allowed on cannot be read", "error", err)
		return w, false
	}
	return world.Build(given), true
}

// sayHeldBack logs why ends are held back, once for each change of it; that only
// the inputs' commit is another is none.
func (r *Reconciler) sayHeldBack(plan *planner.Plan) {
	why := plan.HeldBack
	if plan.Inputs != "" {
		why = strings.ReplaceAll(why, plan.Inputs, "")
	}
	if why == r.heldBack {
		return
	}
	r.heldBack = why
	if why == "" {
		r.opts.Log.Info("ends are not held back any more")
		return
	}
	r.opts.Log.Warn("ends are held back", "why", plan.HeldBack)
}
