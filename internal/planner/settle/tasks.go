package settle

import (
	"cmp"
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// NewJob gathers what the ledger knows of an intent.
func (r *Settler) NewJob(in *model.Intent, tenantName, name string) *draft.Job {
	return r.jobOf(in, tenantName, name, r.W.Ledger.State(tenantName, name), r.W.Ledger.ByIntent(tenantName, name))
}

// KnownJob is NewJob for an intent of which it is known how it waits.
func (r *Settler) KnownJob(in *model.Intent, k *draft.Known) *draft.Job {
	j := r.jobOf(in, in.Metadata.Namespace, in.Metadata.Name, k.State, nil)
	j.Known = k
	return j
}

func (r *Settler) jobOf(in *model.Intent, tenantName, name string, state *v1alpha1.IntentState, all []*v1alpha1.Contract) *draft.Job {
	j := &draft.Job{}
	j.In, j.TenantName, j.Name, j.Tenant = in, tenantName, name, r.Accounts.Of(tenantName)
	j.State, j.All = state, all
	j.Dec = draft.Decision{Tenant: tenantName, Name: name, Considered: len(r.Inventory.Offers())}
	if in != nil {
		j.Dec.Path = in.Path
		j.Priority = in.Spec.Priority
		if j.Warm() {
			j.Priority = draft.WarmPriority
		}
		if p := j.Tenant.Spec.MaxPriority; p != nil {
			j.Priority = min(j.Priority, *p)
		}
		j.Consumer = j.Tenant.Spec.ConsumerOf(&in.Spec)
		r.adopt(j)
	}
	if j.State == nil || (in != nil && j.State.Status.State == v1alpha1.IntentReleasing) {
		j.FirstSeen = v1alpha1.FirstSeen{At: r.Now}
		if in != nil {
			j.FirstSeen.Commit, j.FirstSeen.Author = cmp.Or(in.Commit, r.W.Inputs), in.Author
			j.FirstSeen.At = cmp.Or(in.Since, r.Now)
		}
	} else {
		j.FirstSeen = j.State.Status.FirstSeen
		j.Started = j.State.Status.Started
	}
	if j.State != nil {
		j.Ordinals = maps.Clone(j.State.Status.NextOrdinals)
		j.Displaced = in != nil && !j.State.Status.Displaced.IsZero() && j.State.Status.Digest == in.Digest
		if j.Dec.Path == "" {
			j.Dec.Path = j.State.Status.Path
		}
	}
	if j.Ordinals == nil {
		j.Ordinals = map[string]int32{}
	}
	return j
}

// adopt takes over state and contracts of the name that the intent had before,
// when no intent has it now.
func (r *Settler) adopt(j *draft.Job) {
	old := j.In.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
	if old == "" || old == j.Name || j.State != nil || r.Find(j.TenantName, old) != nil {
		return
	}
	state := r.W.Ledger.State(j.TenantName, old)
	if state == nil {
		return
	}
	moved := *state
	moved.Metadata.Name = j.Name
	j.State = &moved
	j.All = r.W.Ledger.ByIntent(j.TenantName, old)
	draft.SetKey(&r.Draft, r.Renamed, [2]string{j.TenantName, old}, state)
}

// TaskFor is what a replica needs, nil when it has it.
func (r *Settler) TaskFor(j *draft.Job, replica int32, c *v1alpha1.Contract) *draft.Task {
	if c == nil {
		return &draft.Task{Kind: draft.TaskFresh, Replica: replica}
	}
	o := r.OfferOf(c)
	if r.Cut[c.Metadata.Name] {
		r.Drop(j, c, v1alpha1.PhaseReleased, lifecycle.CodeBudget, "the tenant's budget is at its limit")
		return &draft.Task{Kind: draft.TaskFresh, Replica: replica}
	}
	if r.refusedUnused(j, c) {
		return &draft.Task{Kind: draft.TaskFresh, Replica: replica, Old: c}
	}
	if t := r.failoverOf(replica, c); t != nil {
		return t
	}
	if c = r.interrupt(j, r.record(j, c)); c.Status.Displaced != nil && !r.W.Deaf {
		return &draft.Task{Kind: draft.TaskLeave, Replica: replica, Old: c}
	}
	if o != nil && !o.LeaveBy.IsZero() && !r.W.Deaf {
		r.Due(o.LeaveBy)
		return &draft.Task{Kind: draft.TaskMove, Replica: replica, Old: c}
	}
	if draft.Differs(&r.Draft, j, c) {
		return &draft.Task{Kind: draft.TaskAdapt, Replica: replica, Old: c}
	}
	return nil
}
