package reconciler

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// judge looks at what the plan decided of the requests. Those that are refused
// are laid aside, and taken out of the plan as if nobody had asked.
func (r *Reconciler) judge(in *inputs, w *planner.World, plan *planner.Plan) {
	if len(r.desk.files) == 0 {
		return
	}
	gone := map[intentKey]bool{}
	r.desk.waiting = slices.DeleteFunc(r.desk.waiting, func(one *waiter) bool {
		if one.release != "" {
			return false
		}
		err := judgement(in, w, plan, one)
		if err == nil {
			return false
		}
		gone[intentKey{one.tenant, one.id}] = true
		delete(r.desk.files, one.path)
		r.desk.refused = append(r.desk.refused, refusedRequest{one, err})
		return true
	})
	if len(gone) > 0 {
		forget(in, w, plan, gone)
	}
}

// judgement is why a request gets nothing, nil when it gets what it asks for.
func judgement(in *inputs, w *planner.World, plan *planner.Plan, one *waiter) *wire.Refusal {
	d := decisionOf(plan, one.tenant, one.id)
	it := intentsCalled(in.fleet, intentKey{one.tenant, one.id})
	switch {
	case len(it) == 0 && in.fleet.Tenants[one.tenant] == nil:
		return refusal(http.StatusForbidden, wire.ReasonNotEnabled, "clusters/%s.yaml names the tenant %q, and there is none: add tenants/%s.yaml", one.ask.Cluster, one.tenant, one.tenant)
	case len(it) == 0:
		return refusal(http.StatusBadRequest, "BadRequest", "%s", cmp.Or(whyUnread(in.fleet, one.path), "the request cannot be read as an intent"))
	case it[0].Problem != "":
		return refusal(http.StatusBadRequest, "BadRequest", "%s", it[0].Problem)
	case w.Deaf:
		err := refusal(http.StatusServiceUnavailable, wire.ReasonDeaf, "deaf: too few providers are heard to decide; ask again")
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
	err := refusal(http.StatusConflict, cmp.Or(d.Code, planner.CodeNothingFits), "nothing is reserved: %s", cmp.Or(d.Reason, string(d.Action)))
	err.Body.Rejected, err.Body.Considered, err.Body.Near = d.Rejected, d.Considered, d.Near
	return err
}

// whyUnread is what the reader says of a file.
func whyUnread(f *fleet.Fleet, path string) string {
	for _, d := range f.Diagnostics {
		if d.File == path {
			return d.Message
		}
	}
	return ""
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

// forget takes intents that nobody will write out of what a round knows and
// decided. They hold nothing, so nothing else depends on them.
func forget(in *inputs, w *planner.World, plan *planner.Plan, gone map[intentKey]bool) {
	without := *in.fleet
	without.Intents = slices.DeleteFunc(slices.Clone(in.fleet.Intents), func(it *model.Intent) bool { return gone[keyOfIntent(it)] })
	in.fleet = &without
	w.Intents = slices.DeleteFunc(slices.Clone(w.Intents), func(it *model.Intent) bool { // the planner remembers the list
		return gone[intentKey{it.Metadata.Namespace, it.Metadata.Name}]
	})
	isGone := func(d *planner.Decision) bool { return gone[intentKey{d.Tenant, d.Name}] }
	plan.Intents = slices.DeleteFunc(slices.Clone(plan.Intents), isGone)
	plan.Unsettled = slices.DeleteFunc(slices.Clone(plan.Unsettled), isGone)
	plan.Contracts = slices.DeleteFunc(plan.Contracts, func(c model.Change) bool {
		return c.Before == nil && gone[intentKey{c.After.Metadata.Namespace, c.After.Spec.Intent.Name}]
	})
	plan.States = slices.DeleteFunc(plan.States, func(s model.StateChange) bool {
		return s.Before == nil && gone[intentKey{s.After.Metadata.Namespace, s.After.Metadata.Name}]
	})
}
