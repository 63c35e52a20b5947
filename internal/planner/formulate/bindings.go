package formulate

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// bindings are what jobs of a batch have to do with each other.
type bindings struct {
	placer  *place.Placer
	members map[*draft.Job][]*place.Seat
	// stay are those that must not be moved, because what their place depends on is not in
	// the batch as a whole.
	stay map[*draft.Job]bool
	// with are those that each must be together with.
	with map[*draft.Job][]*draft.Job
}

// bindingsOf are those of seats that could move if each was alone.
func bindingsOf(p *place.Placer, seats []*place.Seat) *bindings {
	b := &bindings{placer: p, members: map[*draft.Job][]*place.Seat{}, stay: map[*draft.Job]bool{}, with: map[*draft.Job][]*draft.Job{}}
	var jobs []*draft.Job
	for _, s := range seats {
		if b.members[s.Job] == nil {
			jobs = append(jobs, s.Job)
		}
		b.members[s.Job] = append(b.members[s.Job], s)
	}
	for _, j := range jobs {
		b.stay[j] = b.unfit(j)
	}
	for _, j := range jobs {
		b.bind(j)
	}
	for changed := true; changed; {
		changed = false
		for _, j := range jobs {
			if !b.stay[j] && slices.ContainsFunc(b.with[j], func(k *draft.Job) bool { return b.stay[k] }) {
				b.stay[j], changed = true, true
			}
		}
	}
	return b
}

// whole reports whether all that a job wants is in the batch, and all of it has a place or
// nothing.
func (b *bindings) whole(j *draft.Job) bool {
	list, placed := b.members[j], 0
	for _, s := range list {
		if s.At != nil {
			placed++
		}
	}
	return all(j) && len(list) == int(j.Replicas()) && (placed == 0 && len(j.Live) == 0 || placed == len(list) && len(j.Live) <= placed)
}

// unfit reports whether a job depends on where others of its replicas are, and is not in
// the batch as a whole, or in several of the domains that it must share.
func (b *bindings) unfit(j *draft.Job) bool {
	w, shares := place.Shares(b.placer, j)
	if shares && j.In.Spec.Split == nil { // a domain does not keep parts (place.DivisionOf)
		at := map[string]bool{}
		for _, s := range b.members[j] {
			if s.At != nil {
				at[match.Domain(s.At.Offer, w.By, w.Label)] = true
			}
		}
		if !b.whole(j) || len(at) > 1 || at[""] {
			return true
		}
	}
	if j.In.Spec.MinReplicas > 0 && !j.Gang() && b.placer.By(draft.RulesMinReplicas) {
		return true // so many have a place, or none
	}
	ruled := b.placer.Ruled(j) || budgeted(b.placer, j)
	return ruled && (!b.whole(j) || len(b.placer.W.Ledger.ByIntent(j.TenantName, j.Name)) > 0)
}

// bind finds those that a job is together with: all have a place or none has; one that has
// a place may leave it where the others have nothing, and they wait. One that shares less than a provider stays,
// and so does one that belongs to an intent which is not here.
func (b *bindings) bind(j *draft.Job) {
	names := b.placer.Relations().Together[draft.KeyOfJob(j)]
	if w, ok := place.Shares(b.placer, j); len(names) > 0 && (!ok || w.By != "provider") {
		b.stay[j] = true
	}
	home := b.home(j)
	for _, name := range names {
		other := b.placer.JobOf(j.TenantName, name)
		switch {
		case b.follows(j) == other && other != nil && home == "" && b.members[other] != nil, other != nil && b.follows(other) == j && b.members[other] != nil && b.home(other) == "":
			b.with[j] = append(b.with[j], other) // one of them may be alone
			continue
		case home != "" && b.hasNothing(j.TenantName, name, other):
			continue // it follows, wherever this one is
		}
		if other == nil || b.members[other] == nil || b.home(other) != home {
			b.stay[j] = true
			continue
		}
		b.with[j] = append(b.with[j], other)
	}
}

// follows is the job that a job follows: the only one that either of them is together with,
// which does not name it; nil for none.
func (b *bindings) follows(j *draft.Job) *draft.Job {
	names := b.placer.Relations().Together[draft.KeyOfJob(j)]
	if len(names) != 1 || len(j.In.Spec.Placement.Together) == 0 {
		return nil
	}
	lead := b.placer.JobOf(j.TenantName, names[0])
	if lead == nil || lead.In == nil || len(lead.In.Spec.Placement.Together) > 0 || len(b.placer.Relations().Together[draft.KeyOfJob(lead)]) != 1 || lead.Priority != j.Priority {
		return nil
	}
	return lead
}

// hasNothing reports whether an intent holds nothing anywhere.
func (b *bindings) hasNothing(tenant, name string, j *draft.Job) bool {
	return (j == nil || len(j.Live) == 0 && b.home(j) == "") && len(b.placer.W.Ledger.ByIntent(tenant, name)) == 0
}

// home is the provider of a job's first seat, "" for none.
func (b *bindings) home(j *draft.Job) string {
	if list := b.members[j]; len(list) > 0 && list[0].At != nil {
		return list[0].At.Offer.Provider
	}
	return ""
}

// all reports whether a job is served whole or not at all.
func all(j *draft.Job) bool { return j.Gang() || j.Replicas() == 1 }
