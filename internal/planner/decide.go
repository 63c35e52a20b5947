package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
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
	for _, names := range [...]map[string]bool{r.excess, r.cut} {
		for name := range names {
			r.forgetContract(name)
		}
	}
	r.sift()
	r.addVanished()
	for _, j := range r.jobs {
		r.settleJob(j)
	}
	r.ration()
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
		r.tellKept() // the estimate makes other reservations
		r.estimate()
	}
	r.queuePositions()
	r.tellShares()
	states := r.states()
	r.addDecisions()
	r.write(states)
	r.checkInvariants()
	r.totals()
}

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

// addVanished makes jobs of what the ledger holds or remembers for intents
// that are no more: first of what it remembers, then of what it only holds.
func (r *round) addVanished() {
	type lost struct {
		key   [2]string
		first string // of its contracts, "" when it is remembered
	}
	list := make([]lost, 0, len(r.orphans))
	for k := range r.orphans {
		l := lost{key: k}
		if r.w.Ledger.State(k[0], k[1]) == nil {
			for _, c := range r.heldOf(k) {
				if l.first == "" || c.Metadata.Name < l.first {
					l.first = c.Metadata.Name
				}
			}
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b lost) int {
		return cmp.Or(strings.Compare(a.first, b.first), compareNames(a.key[0], a.key[1], b.key[0], b.key[1]))
	})
	for _, l := range list {
		if r.renamed[l.key] == nil {
			r.jobs = append(r.jobs, r.newJob(nil, l.key[0], l.key[1]))
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
		if l.RunnerUp != nil {
			text += fmt.Sprintf("; next %s %.2f", l.RunnerUp.Flavor, l.RunnerUp.Score)
		}
		return text
	}
	return ""
}

// claimedText names the warm pools that new contracts took slices over from.
func claimedText(lines []ContractLine) string {
	var pools []string
	for i := range lines {
		if l := &lines[i]; l.Claimed != "" && (l.Action == Place || l.Action == Move) {
			pools = append(pools, l.Claimed)
		}
	}
	slices.Sort(pools)
	switch pools = slices.Compact(pools); len(pools) {
	case 0:
		return ""
	case 1:
		return "takes over what was kept warm in pool " + pools[0]
	}
	return "takes over what was kept warm in pools " + strings.Join(pools, ", ")
}

func batchedText(j *job) string {
	if !j.batched || !makesNew(j.dec.Contracts) {
		return ""
	}
	return "chosen so that the intents first seen together cost least in all"
}

// seatedText says why better offers were left alone.
func seatedText(j *job) string {
	if !j.seated || !makesNew(j.dec.Contracts) {
		return ""
	}
	return "chosen so that all replicas find a place within placement.spread"
}

func makesNew(lines []ContractLine) bool {
	return slices.ContainsFunc(lines, func(l ContractLine) bool { return l.Action == Place || l.Action == Move })
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
	var delta quantity.Micro
	for i := range r.plan.Contracts {
		for sign, c := range map[quantity.Micro]*v1alpha1.Contract{-1: r.plan.Contracts[i].Before, 1: r.plan.Contracts[i].After} {
			if c != nil && c.Status.Phase.Charged() {
				delta += sign * r.inFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency)
			}
		}
	}
	r.plan.HourlyBefore, r.plan.HourlyAfter = r.charged.Hourly().Decimal(), (r.charged.Hourly() + delta).Decimal()
	last := ""
	for _, o := range r.inventory.Unheard() {
		if o.State == model.Silent {
			r.due(o.GraceEnds)
		}
		if (o.State == model.Silent || o.State == model.Lost || o.State == model.Elsewhere) && o.Provider != last {
			last = o.Provider
			r.plan.Silent = append(r.plan.Silent, SilentProvider{Name: o.Provider, Since: o.Since, Lost: o.State == model.Lost})
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
		if j.tenant.LimitedMonthly() {
			_, end := r.books.MonthBounds(r.now)
			r.due(end)
			return
		}
	}
}

// LedgerChanges are the plan's changes as the ledger takes them.
func (p *Plan) LedgerChanges() ledger.Changes {
	return ledger.Changes{Contracts: p.Contracts, States: p.States, Spends: p.Spends}
}
