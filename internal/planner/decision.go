package planner

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/explain"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// addDecisions puts the jobs' decisions among those that quick keeps: in the places that
// sift left free, in place of what was kept of those that were woken since, and in their
// order those on intents that are no more.
func (r *round) addDecisions() {
	var list, gone []*draft.Decision
	room := make([]draft.Decision, 0, len(r.Jobs))
	for n, j := range r.Jobs {
		if j.In == nil && len(j.Live)+j.Releasing == 0 && len(j.Dec.Contracts) == 0 {
			continue
		}
		room = append(room, j.Dec)
		d := &room[len(room)-1]
		if list = append(list, d); n < len(r.sifted) {
			r.Plan.Intents[r.sifted[n]] = d
		} else if at, found := r.PlaceOf(d.Tenant, d.Name); found {
			r.Plan.Intents[at] = d
		} else {
			gone = append(gone, d)
		}
	}
	slices.SortFunc(list, byName)
	r.Plan.Unsettled = list
	if r.doubled {
		r.Plan.Intents = slices.DeleteFunc(r.Plan.Intents, func(d *draft.Decision) bool { return d == nil })
	}
	slices.SortFunc(gone, byName)
	r.Plan.Intents = insertAll(r.Plan.Intents, gone)
}

// byName orders decisions.
func byName(a, b *draft.Decision) int { return draft.CompareNames(a.Tenant, a.Name, b.Tenant, b.Name) }

// insertAll puts decisions in order among others in order, none of which has the name of
// one of them. What it is given may be overwritten.
func insertAll(kept, more []*draft.Decision) []*draft.Decision {
	end := len(kept)
	kept = append(kept, more...)
	for k, d := range slices.Backward(more) {
		at, _ := slices.BinarySearchFunc(kept[:end], d, byName)
		copy(kept[at+k+1:], kept[at:end])
		kept[at+k], end = d, at
	}
	return kept
}

// kept is the decision on an intent that is served as it asks.
func (r *round) kept(in *model.Intent, contracts []*v1alpha1.Contract) draft.Decision {
	d := draft.Decision{Tenant: in.Metadata.Namespace, Name: in.Metadata.Name, Path: in.Path, Action: draft.Keep}
	var sum quantity.Micro
	for _, c := range contracts {
		if c.Status.Phase.Charged() {
			d.Contracts = append(d.Contracts, r.Line(c, draft.Keep))
			sum = sum.Plus(r.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency))
		}
	}
	d.HourlyBefore = sum.Decimal()
	d.HourlyAfter = d.HourlyBefore
	return d
}

// finish turns what came of a job into its decision.
func (r *round) finish(j *draft.Job) {
	j.Dec.Proposals = j.Proposals
	takesBack(j)
	r.tell(j)
	for _, c := range j.Live {
		if !slices.ContainsFunc(j.Dec.Contracts, func(l draft.ContractLine) bool { return l.Name == c.Metadata.Name }) {
			j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
		}
		j.Dec.HourlyAfter = j.Dec.HourlyAfter.Add(r.HourlyOf(c))
	}
	slices.SortStableFunc(j.Dec.Contracts, func(a, b draft.ContractLine) int { return strings.Compare(a.Name, b.Name) })
}

// takesBack finds what a job left to others and then took itself, which is not left to them.
func takesBack(j *draft.Job) {
	if !slices.ContainsFunc(j.Dec.Contracts, func(l draft.ContractLine) bool { return l.Left != "" }) {
		return
	}
	has := map[string]bool{}
	for _, c := range j.Live {
		has[c.Spec.Provider+"/"+c.Spec.Flavor] = true
	}
	lines := slices.Clone(j.Dec.Contracts)
	for i := range lines {
		if l := &lines[i]; l.Action != draft.Release {
			has[l.Provider+"/"+l.Flavor] = true
		}
	}
	for i := range lines {
		if has[lines[i].Left] {
			lines[i].Left = ""
		}
	}
	j.Dec.Contracts = lines
}

// tell names the action and the state of a job that was not settled by time or
// rights.
func (r *round) tell(j *draft.Job) {
	if j.Dec.Action != "" {
		return
	}
	if len(j.Open) > 0 {
		r.Due(r.Match.Due(j.In))
	}
	if j.Finding() {
		r.tellFound(j)
		return
	}
	if r.TellDisplaced(j) {
		return
	}
	if len(j.Open) == 0 && j.Later > 0 {
		j.Settle(draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentPlaced, lifecycle.CodeUpdating, "%s", explain.Joined(explain.ReasonOf(j), explain.LaterText(j)))
		return
	}
	if len(j.Open) == 0 {
		j.Dec.Also = explain.Joined(explain.ClaimedText(j.Dec.Contracts), explain.BatchedText(j), explain.SeatedText(j), explain.SharedText(j), account.LoanText(j.Live), r.FollowText(j), j.Sizing.Text(), explain.ScaledText(j.Dec.Contracts))
		j.Settle(draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentPlaced, "", "%s", explain.Joined(explain.ReasonOf(j), j.Dec.Also))
		if j.Dec.Action != draft.Place && j.Dec.Action != draft.Keep {
			j.Dec.Code = j.WhyCode
		}
		return
	}
	f := &j.Open[0]
	if j.OnlyFailovers() {
		j.Dec.Rejected = f.Rejected
		settleBy(j, f, draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentPlaced, f.Code, "", "")
		return
	}
	if i := slices.IndexFunc(j.Open, func(f draft.Failure) bool { return f.Task.Kind != draft.TaskFailover }); i >= 0 {
		f = &j.Open[i] // what only waits for its provider is not why it is not served
	}
	j.Dec.Rejected, j.Dec.Fitting = f.Rejected, 0
	enough := int(j.Replicas())
	if j.Follows() {
		enough = int(j.Least())
	}
	if m := j.In.Spec.MinReplicas; !j.Gang() && m > 0 {
		enough = int(m)
	}
	if j.Served() >= enough && !slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind != draft.TaskFresh }) {
		settleBy(j, f, draft.ActionOf(j.Dec.Contracts), v1alpha1.IntentPlaced, "", "", "")
		return
	}
	r.queue(j, f)
}

// giveUp makes an intent wait no more: what it holds is held to its own terms from this
// round on, and not from the next.
func giveUp(r *round, j *draft.Job, f *draft.Failure, code, before, after string) {
	if r.By(draft.RulesRefusedToTerms) {
		r.HoldToTerms(j)
	}
	settleBy(j, f, draft.Refuse, v1alpha1.IntentRefused, code, before, after)
}

// queue makes an intent wait, unless it has waited long enough or was never
// meant to.
func (r *round) queue(j *draft.Job, f *draft.Failure) {
	if j.In.Spec.Queue.Policy == "fail" && f.Code != lifecycle.CodePreempting && f.Code != lifecycle.CodeReclaiming && f.Code != lifecycle.CodeMakingRoom {
		after := ""
		if j.In.Metadata.Annotations[v1alpha1.AnnotationRequestedBy] == "" { // a request is simply made again
			after = "; with queue.policy: fail it does not wait: change its specification to try again"
		}
		giveUp(r, j, f, f.Code, "", after)
		return
	}
	since := r.WaitingSince(j)
	j.Dec.Since = since
	if timeout := j.In.Spec.Queue.Timeout.Duration; timeout > 0 {
		j.Dec.GivesUp = v1alpha1.TimeOf(since.Add(timeout))
		if r.TimedOut(j) {
			giveUp(r, j, f, lifecycle.CodeQueueTimeout, "it waited for spec.queue.timeout ("+j.In.Spec.Queue.Timeout.String()+"), and waits no more: change its specification to try again; ", "")
			return
		}
		r.Due(j.Dec.GivesUp)
	}
	j.Since = since
	switch {
	case j.Noticed && j.Why != "":
		j.Settle(draft.Preempt, v1alpha1.IntentQueued, f.Code, "%s", j.Why)
	case j.Noticed:
		settleBy(j, f, draft.Preempt, v1alpha1.IntentQueued, f.Code, "", "")
	default:
		settleBy(j, f, draft.Queued, v1alpha1.IntentQueued, f.Code, "", "")
	}
}

// settleBy settles a job by what it could not do, with what is to be known of that
// before and after it.
func settleBy(j *draft.Job, f *draft.Failure, action draft.Action, phase v1alpha1.IntentPhase, code, before, after string) {
	j.Settle(action, phase, code, "%s", before+f.Text+after)
	j.Dec.Counted = f.CountedIn(len(before))
}

// tellFound writes what would be done. Nothing is written of an intent that was
// never more than that; one that held something is remembered as suspended.
func (r *round) tellFound(j *draft.Job) {
	j.Silent = j.State == nil
	j.Settle(draft.Find, v1alpha1.IntentSuspended, lifecycle.CodeStageFind, "stage find: nothing is reserved")
	if len(j.Open) > 0 {
		f := &j.Open[0]
		j.Dec.Rejected, j.Dec.Code, j.Dec.Reason, j.Dec.Counted = f.Rejected, f.Code, f.Text, f.CountedIn(0)
	}
}

// queuePositions numbers those that wait for capacity.
func (r *round) queuePositions() {
	n := 0
	for _, j := range r.Waiting {
		if j.Dec.Action == draft.Queued {
			n++
			j.Dec.Position = n
		}
	}
}
