package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// The specification of an intent may be out of force: its file cannot be read
// (Frozen), or what it says is refused. What it held stays as it is then, but
// only on its contracts' own terms:
//
//	term        a contract ends at the end that it records
//	budget      the limit of its tenant cuts it as any other (cutBudgets)
//	preemption  by the priority that it records, unless it records that it is
//	            not preemptible
//	drain,      the operator's or the provider's time holds; no other place is
//	interruption looked for, because nobody knows what would do
//
// Freezing itself never ends a contract. One without an end meets the tenant's
// maxDuration, though not before it was frozen for safety.frozenFor; from then
// on it counts as preemptible at priority 0.

func (r *round) frozenFor() time.Duration {
	return r.fleet.Safety.Ages()
}

// holdToTerms ends what ends of an intent's contracts though its specification
// is out of force.
func (r *round) holdToTerms(j *job) {
	if r.fleet.Suspend {
		return
	}
	for _, c := range slices.Clone(j.live) {
		if r.cut[c.Metadata.Name] {
			j.drop(r, c, v1alpha1.PhaseReleased, CodeBudget, "the tenant's budget is at its limit")
			continue
		}
		end := c.Spec.Term.End
		if !end.IsZero() && !end.After(r.now.Time) {
			j.drop(r, c, v1alpha1.PhaseExpired, CodeTermEnded, "its term ended "+stamp(end))
			continue
		}
		r.due(end)
		if j.frozen {
			r.holdFrozen(j, c)
		}
	}
}

// holdFrozen ends a frozen contract by what its tenant's limits, its provider
// or the operator of its provider say.
func (r *round) holdFrozen(j *job, c *v1alpha1.Contract) {
	if limit := r.maxDurationOf(j, c); !limit.IsZero() {
		if !limit.After(r.now.Time) {
			j.drop(r, c, v1alpha1.PhaseExpired, CodeMaxDuration, "its intent cannot be read, and it lasts longer than the tenant's maxDuration")
			return
		}
		r.due(limit)
	}
	if r.w.Deaf {
		return
	}
	c = r.interrupt(j, c)
	if d := c.Status.Displaced; d != nil && d.Cause == v1alpha1.Interrupted {
		if !d.Leaves.After(r.now.Time) {
			j.drop(r, c, v1alpha1.PhasePreempted, string(d.Cause), r.gaveWay(c))
			return
		}
		r.due(d.Leaves)
	}
	o := r.offerOf(c)
	if o == nil || o.LeaveBy.IsZero() {
		return
	}
	if o.LeaveBy.After(r.now.Time) {
		r.due(o.LeaveBy)
		return
	}
	j.drop(r, c, drainedTo(c), CodeDrain, "its flavor had to be empty by "+stamp(o.LeaveBy)+", and its intent cannot be read")
}

// drainedTo is the end of a contract that was still there when its flavor had
// to be empty.
func drainedTo(c *v1alpha1.Contract) v1alpha1.Phase {
	if c.Spec.Price.Class == v1alpha1.Spot {
		return v1alpha1.PhasePreempted
	}
	return v1alpha1.PhaseFailed
}

// maxDurationOf is when a frozen contract without an end has lasted for as long
// as its tenant's intents may, zero where there is no such limit.
func (r *round) maxDurationOf(j *job, c *v1alpha1.Contract) v1alpha1.Time {
	q := j.tenant.Spec.Quota
	if q == nil || q.MaxDuration.Duration <= 0 || !c.Spec.Term.End.IsZero() {
		return v1alpha1.Time{}
	}
	end := cmp.Or(j.started, c.Spec.Term.Start).Add(q.MaxDuration.Duration)
	if bound := j.frozenSince(r).Add(r.frozenFor()); end.Before(bound) {
		end = bound
	}
	return v1alpha1.TimeOf(end)
}

// frozenSince is since when an intent is frozen, as the ledger remembers it.
func (j *job) frozenSince(r *round) v1alpha1.Time { return lifecycle.FrozenSince(j.state, r.now) }

// keepFrozen keeps what an intent holds that cannot be read, on its terms.
func (r *round) keepFrozen(j *job, why string) {
	j.frozen, j.silent = true, r.w.Deaf || r.fleet.Suspend
	r.forced(j)
	r.holdToTerms(j)
	if len(j.live) > 0 && j.state != nil {
		since := j.frozenSince(r)
		r.due(lifecycle.NextTold(since, r.now))
		r.due(v1alpha1.TimeOf(since.Add(r.frozenFor())))
	}
	text := why
	if slices.ContainsFunc(j.live, r.aged) {
		text += "; it could not be read since " + stamp(j.frozenSince(r)) + ", so that what has no end counts as preemptible at priority 0"
	}
	j.settle(Frozen, "", CodeFrozen, "%s", text)
}

// frozenState is what the ledger remembers of a frozen intent.
func (r *round) frozenState(j *job) *v1alpha1.IntentState {
	s := *j.state
	if j.displacing {
		s.Status.Displaced = r.now
	}
	s.Status = lifecycle.Freeze(&s.Status, len(j.live) > 0, j.frozenSince(r), j.text, r.now)
	return &s
}

// aged reports whether a contract has no end and its intent could not be read
// for longer than safety.frozenFor.
func (r *round) aged(c *v1alpha1.Contract) bool {
	if !c.Spec.Term.End.IsZero() || !r.frozen.any {
		return false
	}
	s := r.w.Ledger.State(c.Metadata.Namespace, c.Spec.Intent.Name)
	if s == nil || s.Status.Frozen == nil || s.Status.Frozen.Since.Add(r.frozenFor()).After(r.now.Time) {
		return false
	}
	return r.isFrozenContract(c)
}

// frozenContract reports whether a contract's intent is frozen, and why.
func (r *round) frozenContract(c *v1alpha1.Contract) (string, bool) {
	tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
	paths := []string{c.Spec.Intent.Path}
	if in := r.find(tenant, name); in != nil {
		paths = append(paths, in.Path)
	}
	return r.frozen.why(tenant, name, paths...)
}

func (r *round) isFrozenContract(c *v1alpha1.Contract) bool {
	_, is := r.frozenContract(c)
	return is
}

// standing is the priority with which a contract stands: the one it records,
// until its intent's change reaches it.
func (r *round) standing(c *v1alpha1.Contract) int32 {
	if r.aged(c) {
		return 0
	}
	return c.Spec.Priority
}

// outOfForce reports whether a contract is judged by what it records alone,
// because its intent cannot be read, is not acted on or is no more.
func (r *round) outOfForce(c *v1alpha1.Contract) bool {
	if in := r.find(c.Metadata.Namespace, c.Spec.Intent.Name); in == nil || in.Problem != "" {
		return true
	}
	return r.isFrozenContract(c)
}

// mayPreempt reports whether a contract's intent lets a job of higher priority
// displace it.
func (r *round) mayPreempt(j *job, c *v1alpha1.Contract) bool {
	if r.outOfForce(c) {
		return r.aged(c) || c.Spec.Preemptible == nil || *c.Spec.Preemptible
	}
	in := r.find(c.Metadata.Namespace, c.Spec.Intent.Name)
	p := in.Spec.Preemption
	return r.priorityOf(in) < j.priority && (p == nil || p.Preemptible == nil || *p.Preemptible)
}

// record writes into a contract what it lacks of an intent in force: ledgers
// made before contracts recorded it do not say that an intent is not preemptible.
func (r *round) record(j *job, c *v1alpha1.Contract) *v1alpha1.Contract {
	if !unrecorded(j.in, c) {
		return c
	}
	next := *c
	next.Spec.Preemptible = j.in.Spec.Preemption.Preemptible
	r.status(c, &next)
	r.replace(j, c, &next)
	return &next
}

func unrecorded(in *model.Intent, c *v1alpha1.Contract) bool {
	p := in.Spec.Preemption
	return p != nil && p.Preemptible != nil && !*p.Preemptible && c.Spec.Preemptible == nil && c.Spec.Intent.Digest == in.Digest
}
