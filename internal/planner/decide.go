package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Decide makes the plan of a world. It reads nothing else and changes nothing
// in it; equal worlds give equal plans.
func Decide(w World) *Plan {
	r := newRound(&w)
	r.decide()
	return r.plan
}

func (r *round) decide() {
	r.prepare()
	r.fillAll()
	r.consolidate()
	r.conclude()
}

// prepare settles everything that needs no offer.
func (r *round) prepare() {
	r.finishReleases()
	r.excess = r.findExcess()
	r.cutBudgets()
	r.guardEnds()
	r.plan.Intents = make([]*Decision, 0, len(r.intents))
	for i, in := range r.intents {
		if i > 0 && r.intents[i-1].Metadata.Name == in.Metadata.Name && r.intents[i-1].Metadata.Namespace == in.Metadata.Namespace {
			continue // two files that name one intent are frozen by the reader
		}
		if d, ok := r.quick(in); ok {
			r.plan.Intents = append(r.plan.Intents, &d)
			continue
		}
		r.jobs = append(r.jobs, r.newJob(in, in.Metadata.Namespace, in.Metadata.Name))
	}
	r.addVanished()
	for _, j := range r.jobs {
		r.settleJob(j)
	}
}

// conclude makes the plan of what came of the jobs.
func (r *round) conclude() {
	r.shiftBooked(1)
	r.settleExcess()
	r.shiftBooked(-1)
	for _, j := range r.jobs {
		r.finish(j)
	}
	if !r.w.Brief {
		r.lookNear()
	}
	r.captureKept()
	if !r.w.Brief {
		r.estimate()
	}
	r.queuePositions()
	r.tellShares()
	states := r.states()
	for _, j := range r.jobs {
		if j.in != nil || len(j.live)+j.releasing > 0 || len(j.dec.Contracts) > 0 {
			d := j.dec
			r.plan.Intents = append(r.plan.Intents, &d)
		}
	}
	r.sortDecisions()
	r.write(states)
	r.checkInvariants()
	r.totals()
}

// sortDecisions puts the jobs' decisions among those on quick keeps.
func (r *round) sortDecisions() {
	byName := func(a, b *Decision) int { return compareNames(a.Tenant, a.Name, b.Tenant, b.Name) }
	if !slices.IsSortedFunc(r.plan.Intents, byName) {
		slices.SortFunc(r.plan.Intents, byName)
	}
}

// kept is the decision on an intent that is served as it asks.
func (r *round) kept(in *Intent, contracts []*v1alpha1.Contract) Decision {
	d := Decision{Tenant: in.Metadata.Namespace, Name: in.Metadata.Name, Path: in.Path, Action: Keep}
	var sum micro
	for _, c := range contracts {
		if c.Status.Phase.Charged() {
			d.Contracts = append(d.Contracts, r.line(c, Keep))
			sum += r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
		}
	}
	d.HourlyBefore = sum.decimal()
	d.HourlyAfter = d.HourlyBefore
	return d
}

// addVanished makes jobs of what the ledger holds or remembers for intents
// that are no more.
func (r *round) addVanished() {
	seen := map[[2]string]bool{}
	for _, j := range r.jobs {
		seen[[2]string{j.tenantName, j.name}] = true
	}
	add := func(tenant, name string) {
		k := [2]string{tenant, name}
		if seen[k] || r.renamed[k] != nil || r.find(tenant, name) != nil {
			return
		}
		seen[k] = true
		r.jobs = append(r.jobs, r.newJob(nil, tenant, name))
	}
	i := 0 // both are in order: walk them side by side
	for s := range r.w.Ledger.States() {
		order := -1
		for ; i < len(r.intents); i++ {
			m := &r.intents[i].Metadata
			if order = compareNames(m.Namespace, m.Name, s.Metadata.Namespace, s.Metadata.Name); order >= 0 {
				break
			}
		}
		if order != 0 {
			add(s.Metadata.Namespace, s.Metadata.Name)
		}
	}
	for c := range r.w.Ledger.Contracts() {
		if c.Status.Phase.Held() {
			add(c.Metadata.Namespace, c.Spec.Intent.Name)
		}
	}
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
		j.settle(actionOf(j.dec.Contracts), v1alpha1.IntentPlaced, "", "%s", joined(reasonOf(j), borrowText(j.live), r.followText(j)))
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
	for i := range j.open {
		if j.open[i].task.kind != failover {
			f = &j.open[i] // what only waits for its provider is not why it is not served
			break
		}
	}
	j.dec.Rejected, j.dec.Fitting = f.rejected, 0
	enough := int(j.replicas())
	if j.follows() {
		enough = int(j.least())
	}
	if m := j.in.Spec.MinReplicas; !j.gang() && m > 0 {
		enough = int(m)
	}
	current := true
	for _, t := range j.tasks {
		current = current && t.kind == fresh
	}
	if current && j.served() >= enough {
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
		j.settle(Refuse, v1alpha1.IntentRefused, f.code, "%s", f.text)
		return
	}
	since := r.waitingSince(j)
	j.dec.Since = since
	if timeout := j.in.Spec.Queue.Timeout.Duration; timeout > 0 {
		j.dec.GivesUp = v1alpha1.TimeOf(since.Add(timeout))
		if r.timedOut(j) {
			j.settle(Refuse, v1alpha1.IntentRefused, CodeQueueTimeout, "waited %s; %s", j.in.Spec.Queue.Timeout, f.text)
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

// actionOf is what was done with an intent, from what was done with its
// contracts.
func actionOf(lines []ContractLine) Action {
	for _, a := range [...]Action{Move, Place, Resize, Release} {
		if slices.ContainsFunc(lines, func(l ContractLine) bool { return l.Action == a }) {
			return a
		}
	}
	return Keep
}

// joined is the parts of a sentence that there are.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// reasonOf is why something was given up, or else why the best offer was
// taken.
func reasonOf(j *job) string {
	if a := actionOf(j.dec.Contracts); j.why != "" && a != Place && a != Keep {
		return j.why
	}
	for _, p := range j.proposals {
		return "could move " + p.Contract + " to " + p.Flavor + " and save " + p.Saves.Text() + " an hour, since " + stamp(p.Since)
	}
	for i := range j.dec.Contracts {
		l := &j.dec.Contracts[i]
		if l.Action != Place && l.Action != Move {
			continue
		}
		text := fmt.Sprintf("score %.2f", l.Score)
		if l.Claimed != "" {
			text += "; takes over a warm slice of pool " + l.Claimed
		}
		if l.RunnerUp != nil {
			text += fmt.Sprintf("; next %s %.2f", l.RunnerUp.Flavor, l.RunnerUp.Score)
		}
		if j.batched {
			text += "; chosen so that the intents first seen together cost least in all"
		}
		return text
	}
	return ""
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

// totals sums up the plan.
func (r *round) totals() {
	var sum, delta micro
	for _, list := range r.held {
		for _, c := range list {
			sum += r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
		}
	}
	for i := range r.plan.Contracts {
		for sign, c := range map[micro]*v1alpha1.Contract{-1: r.plan.Contracts[i].Before, 1: r.plan.Contracts[i].After} {
			if c != nil && c.Status.Phase.Charged() {
				delta += sign * r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
			}
		}
	}
	r.plan.HourlyBefore, r.plan.HourlyAfter = sum.decimal(), (sum + delta).decimal()
	last := ""
	for _, o := range r.offers {
		if o.State == Silent {
			r.due(o.GraceEnds)
		}
		if (o.State == Silent || o.State == Lost) && o.provider != last {
			last = o.provider
			r.plan.Silent = append(r.plan.Silent, SilentProvider{Name: o.provider, Since: o.Since, Lost: o.State == Lost})
		}
	}
	r.monthDue()
	if !r.w.Brief {
		r.plan.Budgets = r.budgetLines()
	}
	r.plan.Notes = r.notes()
}

// monthDue notes the next month's start when a monthly budget holds somebody
// back.
func (r *round) monthDue() {
	for _, j := range r.waiting {
		if j.tenant.maxMonthly < unlimited {
			_, end := r.books.MonthBounds(r.now)
			r.due(end)
			return
		}
	}
}

// LedgerChanges are the plan's changes as the ledger takes them.
func (p *Plan) LedgerChanges() ledger.Changes {
	var ch ledger.Changes
	for i := range p.Contracts {
		ch.Contracts = append(ch.Contracts, ledger.Change{Before: p.Contracts[i].Before, After: p.Contracts[i].After})
	}
	for i := range p.States {
		ch.States = append(ch.States, ledger.StateChange{Before: p.States[i].Before, After: p.States[i].After})
	}
	ch.Spends = p.Spends
	return ch
}
