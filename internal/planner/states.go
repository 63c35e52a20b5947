package planner

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// states are the changes to what the ledger remembers of intents.
func (r *round) states() map[[2]string]model.StateChange {
	out := map[[2]string]model.StateChange{}
	for k, old := range r.renamed {
		out[k] = model.StateChange{Before: old}
	}
	for _, j := range r.jobs {
		k := [2]string{j.tenantName, j.name}
		before := r.w.Ledger.State(j.tenantName, j.name)
		switch {
		case j.silent:
			delete(out, [2]string{j.tenantName, renamedFrom(j)})
		case j.frozen:
			if after := j.state; after != nil {
				if after = r.frozenState(j); !reflect.DeepEqual(before, after) {
					out[k] = model.StateChange{Before: before, After: after}
				}
			}
		case j.gone:
			if before != nil {
				out[k] = model.StateChange{Before: before}
			}
		case j.in == nil && before == nil:
			// nothing is remembered of it
		default:
			after := r.stateOf(j)
			if before == nil || !reflect.DeepEqual(*before, *after) {
				out[k] = model.StateChange{Before: before, After: after, From: r.namedBefore(j)}
			}
		}
	}
	return out
}

// namedBefore is the name under which the ledger knows an intent that is renamed
// in this round, "" for others.
func (r *round) namedBefore(j *job) string {
	if old := renamedFrom(j); r.renamed[[2]string{j.tenantName, old}] != nil {
		return old
	}
	return ""
}

func renamedFrom(j *job) string {
	if j.in == nil {
		return ""
	}
	return j.in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
}

// stateOf is an intent's state after the round.
func (r *round) stateOf(j *job) *v1alpha1.IntentState {
	s := &v1alpha1.IntentState{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindIntentState},
		Metadata: v1alpha1.Metadata{Name: j.name, Namespace: j.tenantName},
	}
	if j.state != nil {
		s.Status = j.state.Status
	}
	o := lifecycle.Outcome{
		State: j.phase, Code: j.code, Message: j.text, FirstSeen: j.firstSeen, Started: j.started, Since: j.since, Waits: len(j.tasks) > 0,
		Displacing: j.displacing, Proposals: j.proposals, Expected: j.sizing.expected(), NextOrdinals: j.ordinals,
	}
	if j.in != nil {
		o.Asked, o.Path, o.Digest = true, j.in.Path, j.in.Digest
	}
	s.Status = lifecycle.After(&s.Status, &o, r.now)
	return s
}

// write puts the round's changes into the plan, those of retention last.
func (r *round) write(states map[[2]string]model.StateChange) {
	for _, name := range slices.Sorted(maps.Keys(r.current)) {
		r.plan.Contracts = append(r.plan.Contracts, model.Change{Before: r.before[name], After: r.current[name], StatusOnly: r.statusOnly[name]})
	}
	if r.retire && !r.fleet.Suspend {
		r.retireOld(states)
	}
	keys := slices.SortedFunc(maps.Keys(states), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	for _, k := range keys {
		r.plan.States = append(r.plan.States, states[k])
	}
}

// retireOld takes contracts that ended long ago out of the tree and carries
// over what they cost.
func (r *round) retireOld(states map[[2]string]model.StateChange) {
	gone := func(tenant, intent string) bool {
		_, frozen := r.frozen.why(tenant, intent)
		return r.find(tenant, intent) == nil && !frozen
	}
	ch := r.books.RetireEach(r.w.Ledger, r.now, r.keepEnded, gone)
	for _, c := range ch.Contracts {
		r.plan.Contracts = append(r.plan.Contracts, model.Change{Before: c.Before})
	}
	slices.SortFunc(r.plan.Contracts, func(a, b model.Change) int { return strings.Compare(a.Last().Metadata.Name, b.Last().Metadata.Name) })
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
	r.plan.Spends = ch.Spends
}
