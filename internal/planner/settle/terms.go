package settle

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// The specification of an intent may be out of force: its file cannot be read
// (Frozen), or what it asks for is refused. What it held stays as it is then, but
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

// HoldToTerms ends what ends of an intent's contracts though its specification
// is out of force.
func (r *Settler) HoldToTerms(j *draft.Job) {
	if r.Fleet.Suspend {
		return
	}
	if j.In != nil || j.Frozen {
		r.beginHeld(j)
	}
	for _, c := range slices.Clone(j.Live) {
		if r.Cut[c.Metadata.Name] {
			r.Drop(j, c, v1alpha1.PhaseReleased, lifecycle.CodeBudget, "the tenant's budget is at its limit")
			continue
		}
		end := c.Spec.Term.End
		if !end.IsZero() && !end.After(r.Now.Time) {
			r.Drop(j, c, v1alpha1.PhaseExpired, lifecycle.CodeTermEnded, "its term ended "+draft.Stamp(end))
			continue
		}
		r.Due(end)
		if j.Frozen {
			r.holdFrozen(j, c)
		}
	}
}

// holdFrozen ends a frozen contract by what its tenant's limits, its provider
// or the operator of its provider state.
func (r *Settler) holdFrozen(j *draft.Job, c *v1alpha1.Contract) {
	if limit := r.maxDurationOf(j, c); !limit.IsZero() {
		if !limit.After(r.Now.Time) {
			r.Drop(j, c, v1alpha1.PhaseExpired, lifecycle.CodeMaxDuration, "its intent cannot be read, and it lasts longer than the tenant's maxDuration")
			return
		}
		r.Due(limit)
	}
	if r.W.Deaf {
		return
	}
	c = r.interrupt(j, c)
	if d := c.Status.Displaced; d != nil && d.Cause == v1alpha1.Interrupted {
		if !d.Leaves.After(r.Now.Time) {
			r.Drop(j, c, v1alpha1.PhasePreempted, string(d.Cause), r.GaveWay(c))
			return
		}
		r.Due(d.Leaves)
	}
	o := r.OfferOf(c)
	if o == nil || o.LeaveBy.IsZero() {
		return
	}
	if o.LeaveBy.After(r.Now.Time) {
		r.Due(o.LeaveBy)
		return
	}
	r.Drop(j, c, place.DrainedTo(c), lifecycle.CodeDrain, "its flavor had to be empty by "+draft.Stamp(o.LeaveBy)+", and its intent cannot be read")
}

// maxDurationOf is when a frozen contract without an end has lasted for as long
// as its tenant's intents may, zero where there is no such limit.
func (r *Settler) maxDurationOf(j *draft.Job, c *v1alpha1.Contract) v1alpha1.Time {
	q := j.Tenant.Spec.Quota
	if q == nil || q.MaxDuration.Duration <= 0 || !c.Spec.Term.End.IsZero() {
		return v1alpha1.Time{}
	}
	end := cmp.Or(j.Started, c.Spec.Term.Start).Add(q.MaxDuration.Duration)
	if bound := r.FrozenSince(j).Add(r.FrozenFor()); end.Before(bound) {
		end = bound
	}
	return v1alpha1.TimeOf(end)
}

// keepFrozen keeps what an intent holds that cannot be read, on its terms.
func (r *Settler) keepFrozen(j *draft.Job, why string) {
	j.Frozen, j.Silent = true, r.W.Deaf || r.Fleet.Suspend
	r.forced(j)
	r.HoldToTerms(j)
	if len(j.Live) > 0 && j.State != nil {
		since := r.FrozenSince(j)
		r.Due(lifecycle.NextTold(since, r.Now))
		r.Due(v1alpha1.TimeOf(since.Add(r.FrozenFor())))
	}
	text := why
	if slices.ContainsFunc(j.Live, r.Aged) {
		text += "; it could not be read since " + draft.Stamp(r.FrozenSince(j)) + ", so that what has no end counts as preemptible at priority 0"
	}
	j.Settle(draft.Frozen, "", lifecycle.CodeFrozen, "%s", text)
}

// record writes into a contract what it does not have of an intent in force: ledgers
// made before contracts recorded it do not state that an intent is not preemptible.
func (r *Settler) record(j *draft.Job, c *v1alpha1.Contract) *v1alpha1.Contract {
	if !Unrecorded(j.In, c) {
		return c
	}
	next := *c
	next.Spec.Preemptible = j.In.Spec.Preemption.Preemptible
	r.Status(c, &next)
	r.Replace(j, c, &next)
	return &next
}

// Unrecorded reports whether a contract misses what its intent states of preemption.
func Unrecorded(in *model.Intent, c *v1alpha1.Contract) bool {
	p := in.Spec.Preemption
	return p != nil && p.Preemptible != nil && !*p.Preemptible && c.Spec.Preemptible == nil && c.Spec.Intent.Digest == in.Digest
}

// forced starts the end of contracts, and ends bookings, that an operator gives up.
func (r *Settler) forced(j *draft.Job) {
	if len(r.W.ForceRelease) == 0 {
		return
	}
	for _, c := range slices.Clone(j.Live) {
		if r.W.ForceRelease[c.Metadata.Name] {
			r.Drop(j, c, v1alpha1.PhaseFailed, lifecycle.CodeForced, "given up by an operator")
		}
	}
	for _, c := range slices.Clone(j.Booked) {
		if r.W.ForceRelease[c.Metadata.Name] && r.By(draft.RulesAgain) { // else it would begin, and end in the next round
			draft.OnAxis(&r.Draft).CancelBooking(j, c, v1alpha1.PhaseFailed, lifecycle.CodeForced, "given up by an operator")
		}
	}
}

// beginHeld begins what is due of the bookings of an intent whose specification is out of
// force: their terms go on.
func (r *Settler) beginHeld(j *draft.Job) {
	if len(j.Booked) == 0 || r.Fleet.Suspend {
		return
	}
	r.starts.Begin(&r.Placer, j, nil)
	r.starts.GiveUp(&r.Placer, j)
}
