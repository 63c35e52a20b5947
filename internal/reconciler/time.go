package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Clock is what is known of this machine's clock; *clock.Check is one.
type Clock interface {
	// Err says that the clock contradicts every server that answered lately.
	Err() error
	// Jump is by how much the clock has jumped since a server last confirmed it,
	// zero when it has not.
	Jump() time.Duration
}

// rightTime refuses to plan by a clock that is wrong.
func (r *Reconciler) rightTime() error {
	if r.opts.Clock == nil {
		return nil
	}
	return r.opts.Clock.Err()
}

// ofTime are the codes of ends that time alone brings.
var ofTime = map[string]bool{
	lifecycle.CodeTermEnded: true, lifecycle.CodeWindow: true, lifecycle.CodeBudget: true, lifecycle.CodeIntentBudget: true,
}

// endsOfAJump holds a plan back that ends many contracts for time alone, after
// the clock has jumped and before a server has confirmed the new time.
func (r *Reconciler) endsOfAJump(ctx context.Context, in *inputs, plan *planner.Plan) error {
	if r.opts.Clock == nil || !r.opts.AllowEnds.IsZero() && r.opts.AllowEnds == in.heads.Inputs.Commit.Hash {
		return nil
	}
	jump, ends := r.opts.Clock.Jump(), endsOfTime(plan)
	limit := max(5, in.ledger.Held()/5)
	if m := in.fleet.Policy.Safety.MaxEnds; m != nil {
		limit = int(*m)
	}
	if jump == 0 || len(ends) <= limit {
		return nil
	}
	if w, known := r.worldOfLeave(ctx, in); known {
		w.AllowEnds = true
		if r.among(endsOfTime(planner.Decide(w)), ends) {
			return nil
		}
	}
	return fmt.Errorf("%d contracts would end for time alone after this machine's clock jumped by %s, and no server has confirmed the new time; one round may end %d (fleet.yaml, spec.safety.maxEnds): check the clock, then restart the daemon, or allow it once with `fleetbroker reconcile --once --allow-ends %s`",
		len(ends), jump.Round(time.Second), limit, in.heads.Inputs.Commit.Hash)
}

// endsOfTime are the contracts that a plan ends for time alone, by name.
func endsOfTime(plan *planner.Plan) (names []string) {
	for _, c := range plan.Contracts {
		if c.Before == nil || c.After == nil {
			continue
		}
		if was, is := c.Before.Status.Phase, c.After.Status.Phase; was == v1alpha1.PhaseBooked && is != was || was.Charged() && !is.Charged() && (c.After.Status.Target == v1alpha1.PhaseExpired || c.After.Status.Phase == v1alpha1.PhaseExpired || ofTime[c.After.Status.Reason]) {
			names = append(names, c.Before.Metadata.Name)
		}
	}
	slices.Sort(names)
	return names
}
