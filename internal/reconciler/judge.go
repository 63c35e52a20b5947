package reconciler

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/requests"
)

// mostJudged is how often a round decides again without the requests that got
// nothing; whoever is refused then is asked to come again.
const mostJudged = 4

// decideRequests is the plan of a world and the world that it was made of. Where
// requests got nothing, it decides again as if they had not been made: what they
// cost of a round's work (spec.limits.work) others may have waited for, and
// whoever decides the round again knows nothing of them.
func (r *Reconciler) decideRequests(ctx context.Context, in *inputs, w planner.World) (planner.World, *planner.Plan, error) {
	for times := 0; ; times++ {
		next, plan := r.decideWithLeave(ctx, in, w)
		if err := r.rightTime(); err != nil { // it may have jumped since it was checked
			return w, nil, err
		}
		if err := r.endsOfAJump(ctx, in, plan); err != nil {
			return w, nil, err
		}
		if !r.judge(in, &next, plan, times >= mostJudged) {
			return next, plan, nil
		}
		w = next
	}
}

// judge looks at what the plan decided of the requests, and reports whether any
// are refused: those are laid aside and taken out of the world. With last all are.
func (r *Reconciler) judge(in *inputs, w *planner.World, plan *planner.Plan, last bool) bool {
	if len(r.desk.files) == 0 {
		return false
	}
	gone := map[intentKey]bool{}
	r.desk.waiting = slices.DeleteFunc(r.desk.waiting, func(one *waiter) bool {
		if one.release != "" || one.file == nil { // nothing is asked for, or stands on the ledger already
			return false
		}
		err := judgement(in, w, plan, one)
		if err == nil && last {
			err = unavailable(time.Second, "too many requests were refused at once; ask again")
		}
		if err == nil {
			return false
		}
		gone[intentKey{one.tenant, one.id}] = true
		delete(r.desk.files, one.path)
		r.desk.refused = append(r.desk.refused, refusedRequest{one, err})
		return true
	})
	if len(gone) > 0 {
		forget(in, w, gone)
	}
	return len(gone) > 0
}

// judgement is why a request gets nothing, nil when it gets what it asks for.
func judgement(in *inputs, w *planner.World, plan *planner.Plan, one *waiter) *wire.Refusal {
	d := decisionOf(plan, one.tenant, one.id)
	it := intentsCalled(in.fleet, intentKey{one.tenant, one.id})
	switch {
	case len(it) == 0 && in.fleet.Tenants[one.tenant] == nil:
		return refusal(http.StatusForbidden, wire.ReasonNotEnabled, "clusters/%s.yaml names the tenant %q, and there is none: add tenants/%s.yaml", one.ask.Cluster, one.tenant, one.tenant)
	case len(it) == 0:
		return refusal(http.StatusBadRequest, "BadRequest", "%s", requests.Why(in.fleet, one.path))
	case it[0].Problem != "":
		return refusal(http.StatusBadRequest, "BadRequest", "%s", it[0].Problem)
	case w.Deaf:
		err := refusal(http.StatusServiceUnavailable, wire.ReasonDeaf, "deaf: too few providers report to decide; ask again")
		err.RetryAfter = 5 * time.Second
		return err
	case d == nil:
		return unavailable(time.Second, "the request was not decided; ask again")
	}
	switch d.Action {
	case planner.Place, planner.Queued:
		return nil
	case planner.Suspend, planner.Frozen:
		return unavailable(30*time.Second, "%s", d.Reason)
	}
	err := refusal(http.StatusConflict, cmp.Or(d.Code, lifecycle.CodeNothingFits), "nothing is reserved: %s", cmp.Or(d.Reason, string(d.Action)))
	err.Body.Rejected, err.Body.Considered, err.Body.Near = d.Rejected, d.Considered, d.Near
	return err
}

func decisionOf(p *planner.Plan, tenant, name string) *planner.Decision {
	at, found := slices.BinarySearchFunc(p.Intents, intentKey{tenant, name}, func(d *planner.Decision, k intentKey) int {
		return cmp.Or(cmp.Compare(d.Tenant, k.tenant), cmp.Compare(d.Name, k.name))
	})
	if !found {
		return nil
	}
	return p.Intents[at]
}

// forget takes intents that nobody will write out of what a round knows.
func forget(in *inputs, w *planner.World, gone map[intentKey]bool) {
	without := *in.fleet
	without.Intents = slices.DeleteFunc(slices.Clone(in.fleet.Intents), func(it *model.Intent) bool { return gone[keyOfIntent(it)] })
	in.fleet = &without
	w.Intents = slices.DeleteFunc(slices.Clone(w.Intents), func(it *model.Intent) bool { // the planner remembers the list
		return gone[intentKey{it.Metadata.Namespace, it.Metadata.Name}]
	})
}
