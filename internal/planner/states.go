package planner

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// states are the changes to what the ledger remembers of intents.
func (r *round) states() map[[2]string]model.StateChange {
	out := map[[2]string]model.StateChange{}
	for k, old := range r.Renamed {
		out[k] = model.StateChange{Before: old}
	}
	for _, j := range r.Jobs {
		if saysTheSame(j) {
			continue
		}
		k := [2]string{j.TenantName, j.Name}
		before := r.W.Ledger.State(j.TenantName, j.Name)
		switch {
		case j.Silent:
			delete(out, [2]string{j.TenantName, draft.RenamedFrom(j)})
		case j.Frozen:
			if after := j.State; after != nil {
				if after = r.frozenState(j); !reflect.DeepEqual(before, after) {
					out[k] = model.StateChange{Before: before, After: after}
				}
			}
		case j.Gone:
			if before != nil {
				out[k] = model.StateChange{Before: before}
			}
		case j.In == nil && before == nil:
			// nothing is remembered of it
		default:
			after := r.stateOf(j)
			if before == nil || !reflect.DeepEqual(*before, *after) {
				out[k] = model.StateChange{Before: before, After: after, From: r.NamedBefore(j)}
			}
		}
	}
	return out
}

// stateOf is an intent's state after the round.
func (r *round) stateOf(j *draft.Job) *v1alpha1.IntentState {
	s := &v1alpha1.IntentState{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindIntentState},
		Metadata: v1alpha1.Metadata{Name: j.Name, Namespace: j.TenantName},
	}
	if j.State != nil {
		s.Status = j.State.Status
	}
	o := lifecycle.Outcome{
		State: j.Phase, Code: j.Code, Message: j.Text, FirstSeen: j.FirstSeen, Started: j.Started, Since: j.Since, Waits: len(j.Tasks) > 0,
		Displacing: j.Displacing, Proposals: j.Proposals, Expected: j.Sizing.Expected(), NextOrdinals: j.Ordinals,
	}
	if j.In != nil {
		o.Asked, o.Path, o.Digest = true, j.In.Path, j.In.Digest
	}
	s.Status = lifecycle.After(&s.Status, &o, r.Now)
	return s
}

// write puts the round's changes into the plan, those of retention last.
func (r *round) write(states map[[2]string]model.StateChange) {
	for _, name := range slices.Sorted(maps.Keys(r.Current)) {
		r.Plan.Contracts = append(r.Plan.Contracts, model.Change{Before: r.Before[name], After: r.Current[name], StatusOnly: r.StatusOnly[name]})
	}
	if r.retire && !r.Fleet.Suspend {
		r.retireOld(states)
	}
	keys := slices.SortedFunc(maps.Keys(states), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	for _, k := range keys {
		r.Plan.States = append(r.Plan.States, states[k])
	}
}

// retireOld takes contracts that ended long ago out of the tree and carries
// over what they cost.
func (r *round) retireOld(states map[[2]string]model.StateChange) {
	gone := func(tenant, intent string) bool {
		_, frozen := r.Frozen.Why(tenant, intent)
		return r.Find(tenant, intent) == nil && !frozen
	}
	ch := r.Books.RetireEach(r.W.Ledger, r.Now, r.KeepEnded, gone)
	for _, c := range ch.Contracts {
		r.Plan.Contracts = append(r.Plan.Contracts, model.Change{Before: c.Before})
	}
	slices.SortFunc(r.Plan.Contracts, func(a, b model.Change) int { return strings.Compare(a.Last().Metadata.Name, b.Last().Metadata.Name) })
	for _, s := range ch.States {
		k := [2]string{s.Before.Metadata.Namespace, s.Before.Metadata.Name}
		mine, both := states[k]
		switch {
		case !both || s.After == nil:
			states[k] = model.StateChange{Before: s.Before, After: s.After}
		case mine.After != nil:
			mine.After.Status.Spent, mine.After.Status.Currency = s.After.Status.Spent, s.After.Status.Currency
		}
	}
	r.Plan.Spends = ch.Spends
}

// frozenState is what the ledger remembers of a frozen intent.
func (r *round) frozenState(j *draft.Job) *v1alpha1.IntentState {
	s := *j.State
	if j.Displacing {
		s.Status.Displaced = r.Now
	}
	s.Status = lifecycle.Freeze(&s.Status, len(j.Live) > 0, r.FrozenSince(j), j.Text, r.Now)
	return &s
}
