package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// fewDecisions is how many are put among the others one by one.
const fewDecisions = 16

// addDecisions puts the jobs' decisions among those on quick keeps, which are
// in order.
func (r *round) addDecisions() {
	var list []*Decision
	for _, j := range r.jobs {
		if j.in != nil || len(j.live)+j.releasing > 0 || len(j.dec.Contracts) > 0 {
			d := j.dec
			list = append(list, &d)
		}
	}
	byName := func(a, b *Decision) int { return compareNames(a.Tenant, a.Name, b.Tenant, b.Name) }
	slices.SortFunc(list, byName)
	r.plan.Unsettled = list
	kept := r.plan.Intents
	if len(list) <= fewDecisions {
		for _, d := range list {
			at, _ := slices.BinarySearchFunc(kept, d, byName)
			kept = slices.Insert(kept, at, d)
		}
		r.plan.Intents = kept
		return
	}
	out := make([]*Decision, 0, len(kept)+len(list))
	for _, d := range list {
		at, _ := slices.BinarySearchFunc(kept, d, byName)
		out = append(append(out, kept[:at]...), d)
		kept = kept[at:]
	}
	r.plan.Intents = append(out, kept...)
}

// kept is the decision on an intent that is served as it asks.
func (r *round) kept(in *model.Intent, contracts []*v1alpha1.Contract) Decision {
	d := Decision{Tenant: in.Metadata.Namespace, Name: in.Metadata.Name, Path: in.Path, Action: Keep}
	var sum quantity.Micro
	for _, c := range contracts {
		if c.Status.Phase.Charged() {
			d.Contracts = append(d.Contracts, r.line(c, Keep))
			sum += r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
		}
	}
	d.HourlyBefore = sum.Decimal()
	d.HourlyAfter = d.HourlyBefore
	return d
}

// finish turns what came of a job into its decision.
func (r *round) finish(j *job) {
	j.dec.Proposals = j.proposals
	r.tell(j)
	for _, c := range j.live {
		if !slices.ContainsFunc(j.dec.Contracts, func(l ContractLine) bool { return l.Name == c.Metadata.Name }) {
			j.dec.Contracts = append(j.dec.Contracts, r.line(c, Keep))
		}
		j.dec.HourlyAfter = j.dec.HourlyAfter.Add(r.hourlyOf(c))
	}
	slices.SortStableFunc(j.dec.Contracts, func(a, b ContractLine) int { return strings.Compare(a.Name, b.Name) })
}

// tell names the action and the state of a job that was not settled by time or
// rights.
func (r *round) tell(j *job) {
	if j.dec.Action != "" {
		return
	}
	if j.finding() {
		r.tellFound(j)
		return
	}
	if r.tellDisplaced(j) {
		return
	}
	if len(j.open) == 0 && j.later > 0 {
		j.settle(actionOf(j.dec.Contracts), v1alpha1.IntentPlaced, CodeUpdating, "%s", joined(reasonOf(j), j.laterText()))
		return
	}
	if len(j.open) == 0 {
		j.dec.Also = joined(claimedText(j.dec.Contracts), batchedText(j), seatedText(j), account.LoanText(j.live), r.followText(j), j.sizing.text(), scaledText(j.dec.Contracts))
		j.settle(actionOf(j.dec.Contracts), v1alpha1.IntentPlaced, "", "%s", joined(reasonOf(j), j.dec.Also))
		if j.dec.Action != Place && j.dec.Action != Keep {
			j.dec.Code = j.whyCode
		}
		return
	}
	f := &j.open[0]
	if j.onlyFailovers() {
		j.dec.Rejected = f.rejected
		j.settle(actionOf(j.dec.Contracts), v1alpha1.IntentPlaced, f.code, "%s", f.text)
		return
	}
	if i := slices.IndexFunc(j.open, func(f failure) bool { return f.task.kind != failover }); i >= 0 {
		f = &j.open[i] // what only waits for its provider is not why it is not served
	}
	j.dec.Rejected, j.dec.Fitting = f.rejected, 0
	enough := int(j.replicas())
	if j.follows() {
		enough = int(j.least())
	}
	if m := j.in.Spec.MinReplicas; !j.gang() && m > 0 {
		enough = int(m)
	}
	if j.served() >= enough && !slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind != fresh }) {
		j.settle(actionOf(j.dec.Contracts), v1alpha1.IntentPlaced, "", "%s", f.text)
		return
	}
	r.queue(j, f)
}

// waitingSince is since when an intent has waited for capacity.
func (r *round) waitingSince(j *job) v1alpha1.Time {
	if s := j.state; s != nil && s.Status.State == v1alpha1.IntentQueued && s.Status.Digest == j.in.Digest &&
		s.Status.Reason != CodeNotBefore && s.Status.Reason != CodeWindow {
		return s.Status.Since
	}
	return r.now
}

// givesUp reports whether an intent that finds nothing in this round is
// refused, so that the next knows it no more.
func (r *round) givesUp(j *job) bool {
	return j.in.Spec.Queue.Policy == "fail" || r.timedOut(j)
}

// timedOut reports whether an intent has waited for as long as it wants to.
func (r *round) timedOut(j *job) bool {
	timeout := j.in.Spec.Queue.Timeout.Duration
	return timeout > 0 && !r.waitingSince(j).Add(timeout).After(r.now.Time)
}

// queue makes an intent wait, unless it has waited long enough or was never
// meant to.
func (r *round) queue(j *job, f *failure) {
	if j.in.Spec.Queue.Policy == "fail" && f.code != CodePreempting && f.code != CodeReclaiming {
		text := f.text
		if j.in.Metadata.Annotations[v1alpha1.AnnotationRequestedBy] == "" { // a request is simply made again
			text += "; with queue.policy: fail it does not wait: change its specification to try again"
		}
		j.settle(Refuse, v1alpha1.IntentRefused, f.code, "%s", text)
		return
	}
	since := r.waitingSince(j)
	j.dec.Since = since
	if timeout := j.in.Spec.Queue.Timeout.Duration; timeout > 0 {
		j.dec.GivesUp = v1alpha1.TimeOf(since.Add(timeout))
		if r.timedOut(j) {
			j.settle(Refuse, v1alpha1.IntentRefused, CodeQueueTimeout, "it waited for spec.queue.timeout (%s), and waits no more: change its specification to try again; %s", j.in.Spec.Queue.Timeout, f.text)
			return
		}
		r.due(j.dec.GivesUp)
	}
	j.since = since
	if j.noticed {
		j.settle(Preempt, v1alpha1.IntentQueued, f.code, "%s", cmp.Or(j.why, f.text))
		return
	}
	j.settle(Queued, v1alpha1.IntentQueued, f.code, "%s", f.text)
}

// tellFound says what would be done. Nothing is written of an intent that was
// never more than that; one that held something is remembered as suspended.
func (r *round) tellFound(j *job) {
	j.silent = j.state == nil
	j.settle(Find, v1alpha1.IntentSuspended, CodeStageFind, "stage find: nothing is reserved")
	if len(j.open) > 0 {
		j.dec.Rejected, j.dec.Code, j.dec.Reason = j.open[0].rejected, j.open[0].code, j.open[0].text
	}
}

// queuePositions numbers those that wait for capacity.
func (r *round) queuePositions() {
	n := 0
	for _, j := range r.waiting {
		if j.dec.Action == Queued {
			n++
			j.dec.Position = n
		}
	}
}
