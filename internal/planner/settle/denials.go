package settle

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// deniedHold is how long a denial must last before its contract goes
// elsewhere: an agent may deny what it does not know of yet.
const deniedHold = 30 * time.Second

// failoverOf is the task of a contract that its provider no longer serves: it
// is lost, its flavor can no longer hold the contract, or it denies the slice.
// nil when there is no such trouble, or not for long enough yet.
func (r *Settler) failoverOf(replica int32, c *v1alpha1.Contract) *draft.Task {
	o := r.OfferOf(c)
	if r.W.Deaf {
		return nil
	}
	if o != nil && o.State == model.Lost {
		if r.HeldBack.Provider(o.Provider) {
			return nil
		}
		return &draft.Task{Kind: draft.TaskFailover, Replica: replica, Old: c}
	}
	if r.Late(c) {
		return &draft.Task{Kind: draft.TaskFailover, Replica: replica, Old: c}
	}
	if c.Status.Phase != v1alpha1.PhaseDegraded {
		return nil
	}
	var hold time.Duration
	switch c.Status.Reason {
	case ledger.DegradedShrunk, ledger.DegradedNode:
		hold = r.Grace()
	case ledger.DegradedSliceDenied:
		hold = deniedHold
	case ledger.DegradedRefused: // the agent itself reports so: there is nothing to wait for
	default:
		return nil
	}
	from := v1alpha1.TimeOf(c.Status.Since.Add(hold))
	if from.After(r.Now.Time) {
		r.Due(from)
		return nil
	}
	return &draft.Task{Kind: draft.TaskFailover, Replica: replica, Old: c}
}

// KeepAway has a job that was to be kept as it is, and has to go elsewhere after all, keep
// away from what denied it.
func KeepAway(r *Settler, j *draft.Job) {
	if j.Avoid == nil && r.By(draft.RulesAgain) {
		j.Avoid = r.avoided(j)
	}
}

// avoided are the flavors that an intent keeps away from, because they denied
// it a slice not long ago: what the ledger remembers of its contracts, so that
// every daemon and every replay agree. From a provider that denied it a flavor
// and does not offer that one any more, or denied it two, it keeps away whole
// (a key without a flavor): another name of the same cards is no help.
func (r *Settler) avoided(j *draft.Job) map[inventory.Key]bool {
	type record struct {
		n    int
		last v1alpha1.Time
	}
	var seen map[inventory.Key]record
	note := func(k inventory.Key, at v1alpha1.Time) {
		was := seen[k]
		if at.Before(was.last.Time) {
			at = was.last
		}
		seen[k] = record{was.n + 1, at}
	}
	denials := map[string][]draft.RefusalRecord{}
	for _, c := range j.All {
		at, denied := r.DeniedAt(r.Latest(c))
		if now := r.Latest(c); r.Late(now) {
			at, denied = r.Now, true // as long as it is late, the same place again is no help
		}
		if !denied {
			continue
		}
		if seen == nil {
			seen = map[inventory.Key]record{}
		}
		note(inventory.Key{Provider: c.Spec.Provider, Name: c.Spec.Flavor}, at)
		if rec, refused := r.RefusalOf(r.Latest(c)); refused {
			denials[rec.Provider] = append(denials[rec.Provider], rec)
		}
	}
	for provider, list := range denials {
		o := r.Inventory.Find(provider, list[0].Flavor)
		one := !slices.ContainsFunc(list, func(rec draft.RefusalRecord) bool { return rec.Flavor != list[0].Flavor })
		if one && o != nil && o.State != model.Withdrawn {
			continue
		}
		for _, rec := range list {
			note(inventory.Key{Provider: provider}, rec.At)
		}
	}
	var out map[inventory.Key]bool
	for k, s := range seen {
		wait := draft.DenialBackoffMax
		if s.n <= 8 { // 10 minutes doubled seven times is 21 hours
			wait = min(wait, draft.DenialBackoff<<(s.n-1))
		}
		until := v1alpha1.TimeOf(s.last.Add(wait))
		if !until.After(r.Now.Time) {
			continue
		}
		r.Due(until)
		if out == nil {
			out = map[inventory.Key]bool{}
		}
		out[k] = true
	}
	return out
}

// refusedUnused starts the end of a contract that its provider refuses before it was
// ever used: nothing runs there that would have to be moved first.
func (r *Settler) refusedUnused(j *draft.Job, c *v1alpha1.Contract) bool {
	if r.W.Deaf || c.Status.Phase != v1alpha1.PhaseDegraded || c.Status.Reason != ledger.DegradedRefused || lifecycle.BeenActive(c) {
		return false
	}
	code, text := draft.Trouble(&r.Draft, c)
	r.Drop(j, c, v1alpha1.PhaseFailed, code, text)
	return true
}
