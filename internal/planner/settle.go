package planner

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// verdict is what quick said of an intent: its decision, which holds as long as
// nothing that it looked at changes and until that time (zero: for good); nil
// when it was not quick.
type verdict struct {
	decision *Decision
	until    v1alpha1.Time
}

// sift keeps the intents that are served as they ask, and makes jobs of the
// others. What an earlier round found holds where it may (Session).
func (r *round) sift() {
	r.plan.Intents = make([]*Decision, 0, len(r.intents)+fewDecisions)
	due := r.plan.Due
	for i, in := range r.intents {
		v := &r.verdicts[i]
		if v.decision == nil || !v.until.IsZero() && !v.until.After(r.now.Time) {
			if i > 0 && r.intents[i-1].Metadata.Name == in.Metadata.Name && r.intents[i-1].Metadata.Namespace == in.Metadata.Namespace {
				continue // two files that name one intent are frozen by the reader
			}
			r.plan.Due = v1alpha1.Time{}
			*v = verdict{}
			d, ok := r.quick(in)
			if !ok {
				due = lifecycle.Earlier(due, r.plan.Due)
				r.jobs = append(r.jobs, r.newJob(in, in.Metadata.Namespace, in.Metadata.Name))
				continue
			}
			*v = verdict{&d, r.plan.Due}
		}
		due = lifecycle.Earlier(due, v.until)
		r.plan.Intents = append(r.plan.Intents, v.decision)
	}
	r.plan.Due = due
}

// quick reports whether an intent is served exactly as it asks and nothing has
// happened to it. Nearly all intents of a fleet are, so it looks at no more
// than it must, and at nothing that its tenant says (tenantsChanged). A fleet
// that consolidates has none: whether a contract could be cheaper elsewhere
// depends on every offer, the tenant's other contracts and the prices of the
// hour, so each intent is looked into in each round.
func (r *round) quick(in *model.Intent) (Decision, bool) {
	none := Decision{}
	if r.fleet.Suspend || r.consolidating() || in.Metadata.Namespace == v1alpha1.FleetTenant || r.probe.is(in.Metadata.Namespace, in.Metadata.Name) || in.Problem != "" || in.Spec.Suspend || len(in.Spec.Schedule.Windows) > 0 {
		return none, false
	}
	state := r.w.Ledger.State(in.Metadata.Namespace, in.Metadata.Name)
	if state == nil || state.Status.Digest != in.Digest || state.Status.Path != in.Path || state.Status.Frozen != nil {
		return none, false
	}
	if _, frozen := r.frozen.why(in.Metadata.Namespace, in.Metadata.Name, in.Path); frozen {
		return none, false
	}
	list := r.w.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name)
	if state.Status.State == v1alpha1.IntentDone {
		if slices.ContainsFunc(list, func(c *v1alpha1.Contract) bool { return c.Status.Phase.Held() }) {
			return none, false
		}
		return Decision{
			Tenant: in.Metadata.Namespace, Name: in.Metadata.Name, Path: in.Path, Action: Done, Code: state.Status.Reason, Reason: doneText,
		}, true
	}
	if state.Status.State != v1alpha1.IntentPlaced {
		return none, false
	}
	var live int32
	for _, c := range list {
		if !c.Status.Phase.Held() {
			continue
		}
		s := &c.Spec
		o := r.offerOf(c)
		if !c.Status.Phase.Charged() || s.Intent.Digest != in.Digest || unrecorded(in, c) || s.Intent.Path != in.Path || s.Intent.Of != 0 ||
			o == nil || o.State != model.Fresh || !o.LeaveBy.IsZero() || c.Status.Displaced != nil || r.interrupted(c, o) || r.cut[c.Metadata.Name] || r.w.ForceRelease[c.Metadata.Name] {
			return none, false
		}
		if !s.Term.End.IsZero() {
			if !s.Term.End.After(r.now.Time) {
				return none, false
			}
			r.due(s.Term.End)
		}
		if c.Status.Phase == v1alpha1.PhaseDegraded {
			return none, false // it may have to go elsewhere
		}
		if r.transitionOf(c).Moves(c) {
			return none, false
		}
		if r.late(c) {
			return none, false
		}
		live++
	}
	if in.Spec.Replicas.Range || live != max(in.Spec.Replicas.Min, 1) {
		return none, false
	}
	return r.kept(in, list), true
}

const doneText = "its term has ended: change its file to place it again"

// settleJob decides everything about an intent that needs no offer: what ends,
// what waits, what is refused. What needs one becomes tasks.
func (r *round) settleJob(j *job) {
	j.observeAll(r)
	if why, is := r.isFrozen(j); is {
		r.keepFrozen(j, why)
		return
	}
	r.forced(j)
	if r.fleet.Suspend {
		j.silent = true
		j.settle(Suspend, "", CodeSuspended, "the fleet is suspended: what stands is kept")
		return
	}
	if j.in == nil {
		r.vanished(j)
		return
	}
	if j.in.Spec.Suspend {
		r.suspended(j)
		return
	}
	if code, why := r.unfit(j); why != "" {
		r.refuse(j, code, why)
		return
	}
	if r.schedule(j) {
		r.plain(j)
	}
}

func (r *round) isFrozen(j *job) (string, bool) {
	if !r.frozen.any {
		return "", false
	}
	paths := make([]string, 0, 4)
	if j.in != nil {
		paths = append(paths, j.in.Path)
	}
	if j.state != nil {
		paths = append(paths, j.state.Status.Path)
	}
	for _, c := range j.all {
		if c.Status.Phase.Held() {
			paths = append(paths, c.Spec.Intent.Path)
		}
	}
	return r.frozen.why(j.tenantName, j.name, paths...)
}

// forced starts the end of contracts that an operator gives up.
func (r *round) forced(j *job) {
	if len(r.w.ForceRelease) == 0 {
		return
	}
	for _, c := range slices.Clone(j.live) {
		if r.w.ForceRelease[c.Metadata.Name] {
			j.drop(r, c, v1alpha1.PhaseFailed, CodeForced, "given up by an operator")
		}
	}
}

// vanished releases what an intent held that is no more.
func (r *round) vanished(j *job) {
	r.holdToTerms(j)
	if len(j.live) > 0 && r.heldBack.tenant(j.tenantName) {
		j.silent = true
		j.settle(Keep, "", CodeHeldBack, "the intent is gone, but too many contracts would end at once")
		return
	}
	if len(j.live) > 0 {
		by := ""
		if who := r.w.RemovedBy[j.live[0].Spec.Intent.Path]; who != "" {
			by = " by " + who
		}
		j.releaseAll(r, v1alpha1.PhaseReleased, CodeRemoved, "the intent was removed"+by)
		j.settle(Release, v1alpha1.IntentReleasing, CodeRemoved, "intent removed%s", by)
		return
	}
	j.gone = len(j.all) == 0
	j.settle(Keep, v1alpha1.IntentReleasing, CodeRemoved, "intent removed, being released")
}

func (r *round) suspended(j *job) {
	why, text := "the intent is suspended", "spec.suspend is true: it gets no capacity until that is removed"
	if by := j.in.Metadata.Annotations[v1alpha1.AnnotationRequestedBy]; by != "" {
		why = "given back by cluster " + by // what came through the API is suspended by it, and by nobody else
		text = why
	}
	if len(j.live) > 0 {
		j.releaseAll(r, v1alpha1.PhaseReleased, CodeSuspended, why)
	}
	j.started = v1alpha1.Time{}
	j.settle(Suspend, v1alpha1.IntentSuspended, CodeSuspended, "%s", text)
}

// refuse keeps what stands, on its terms, and says what is wrong.
func (r *round) refuse(j *job, code, why string) {
	r.holdToTerms(j)
	if r.w.Deaf {
		r.deaf(j)
		return
	}
	for _, c := range j.live {
		j.dec.Contracts = append(j.dec.Contracts, r.line(c, Keep))
	}
	j.settle(Refuse, v1alpha1.IntentRefused, code, "%s", why)
}

func (r *round) deaf(j *job) {
	j.silent = true
	j.tasks, j.news = nil, nil
	for _, c := range j.live {
		j.dec.Contracts = append(j.dec.Contracts, r.line(c, Keep))
	}
	j.settle(Keep, "", CodeDeaf, "too few providers are heard to decide anything")
}

// unfit says why an intent cannot be acted on at all.
func (r *round) unfit(j *job) (code, why string) {
	if j.in.Problem != "" {
		if code = j.in.ProblemCode; code == "" {
			code = CodeInvalid
		}
		return code, j.in.Problem
	}
	if !j.tenant.Known {
		return CodeUnknownTenant, "there is no tenant " + j.tenantName + ": add tenants/" + j.tenantName + ".yaml"
	}
	c := r.w.Clusters[j.consumer]
	switch {
	case j.consumer == "":
		return CodeConsumer, "it names no consumer and its tenant has none: set spec.consumer"
	case !slices.Contains(j.tenant.Spec.Consumers, j.consumer):
		return CodeConsumer, "tenant " + j.tenantName + " may not have capacity in " + j.consumer + ": its consumers are " + strings.Join(j.tenant.Spec.Consumers, ", ")
	case c == nil:
		return CodeConsumer, "cluster " + j.consumer + " is unknown: add clusters/" + j.consumer + ".yaml with the role consumer"
	case !c.HasRole("consumer"):
		return CodeConsumer, "cluster " + j.consumer + " is no consumer: add consumer to spec.roles in clusters/" + j.consumer + ".yaml"
	}
	if code, why := r.remapped(j); why != "" {
		return code, why
	}
	if code, why := r.beyondLimits(j); why != "" {
		return code, why
	}
	return r.beyondQuota(j)
}

// schedule settles what time alone decides, and reports whether the intent
// wants capacity now.
func (r *round) schedule(j *job) bool {
	same := j.state != nil && j.state.Status.Digest == j.in.Digest
	if j.state != nil && j.state.Status.State == v1alpha1.IntentDone {
		if same {
			j.releaseAll(r, v1alpha1.PhaseExpired, CodeTermEnded, "")
			j.settle(Done, v1alpha1.IntentDone, j.state.Status.Reason, doneText)
			return false
		}
		j.started = v1alpha1.Time{}
	}
	if j.refused = same && j.final(); j.refused && len(j.live) == 0 {
		r.refuse(j, j.state.Status.Reason, j.state.Status.Message)
		return false
	}
	s := &j.in.Spec.Schedule
	started := j.started
	if started.IsZero() {
		started = r.now
	}
	life := r.lifeEnd(j, started)
	if life.Ends(r.now) {
		if j.started.IsZero() {
			r.refuse(j, CodeDeadline, "its deadline "+stamp(life.End)+" has passed")
			return false
		}
		return r.expire(j, "its term ended "+stamp(life.End))
	}
	if life.Refused != "" {
		r.refuse(j, life.Code, life.Refused)
		return false
	}
	if !j.started.IsZero() && !life.End.IsZero() {
		r.due(life.End) // also while a window is closed and no contract runs
	}
	at := lifecycle.FirstStart(r.books, s, r.now)
	if j.started.IsZero() && at.After(r.now.Time) {
		if why := lifecycle.StartsTooLate(s, r.boundsOf(j), at); why != "" {
			r.refuse(j, CodeDeadline, why)
			return false
		}
	}
	if s.NotBefore.After(r.now.Time) && len(j.live) == 0 {
		r.due(s.NotBefore)
		j.dec.Expected, j.dec.Estimated = at, true
		return r.wait(j, CodeNotBefore, "it starts "+stamp(at))
	}
	open, until, next := lifecycle.OpenAt(r.books, s.Windows, r.now)
	if !open {
		r.due(next)
		j.releaseAll(r, v1alpha1.PhaseReleased, CodeWindow, "its window has closed")
		j.dec.Expected, j.dec.Estimated = next, true
		return r.wait(j, CodeWindow, "its window opens "+stamp(next))
	}
	j.end = lifecycle.Earlier(life.End, until)
	if !j.end.IsZero() {
		j.seconds = int64(j.end.Sub(r.now.Time) / time.Second)
	}
	r.due(until)
	for _, c := range j.live {
		end := c.Spec.Term.End
		r.due(end)
		if !end.IsZero() && !end.After(r.now.Time) && len(s.Windows) == 0 && c.Spec.Intent.Digest == j.in.Digest {
			return r.expire(j, "its budget.maxTotal is spent")
		}
	}
	return true
}

func (r *round) expire(j *job, why string) bool {
	j.releaseAll(r, v1alpha1.PhaseExpired, CodeTermEnded, why)
	j.settle(Done, v1alpha1.IntentDone, CodeTermEnded, "%s", why)
	return false
}

// wait queues an intent for an instant, without using up its timeout.
func (r *round) wait(j *job, code, why string) bool {
	if r.w.Deaf && len(j.dec.Contracts) == 0 {
		r.deaf(j)
		return false
	}
	j.settle(Queued, v1alpha1.IntentQueued, code, "%s", why)
	return false
}

// plain compares what the intent holds with what it wants.
func (r *round) plain(j *job) {
	if j.warm() {
		r.size(j)
	}
	n := j.replicas()
	if j.in.Spec.Stage == v1alpha1.StageFind {
		j.releaseAll(r, v1alpha1.PhaseReleased, CodeStageFind, "stage find holds nothing")
		n = max(n, 1)
	}
	surplus, fewer := r.surplusOf(j, int(n)), "the intent wants fewer replicas"
	if j.follows() && !j.finding() {
		n, surplus, fewer = r.follow(j)
	}
	byReplica := map[int32][]*v1alpha1.Contract{}
	newest := newestOf(j.live)
	for _, c := range slices.Clone(j.live) {
		i := c.Spec.Intent
		switch {
		case surplus[i.Replica]:
			j.drop(r, c, v1alpha1.PhaseReleased, CodeFewer, fewer)
		case r.stands(j, c, newest[[2]int32{i.Replica, i.Part}]):
		case newest[[2]int32{i.Replica, i.Part}] != c:
			j.drop(r, c, v1alpha1.PhaseReleased, CodeDuplicate, "a newer contract serves the replica")
		default:
			byReplica[i.Replica] = append(byReplica[i.Replica], c)
		}
	}
	r.wantReplicas(j, int(n), byReplica)
	if len(j.tasks)+len(j.news) > 0 {
		j.avoid = r.avoided(j)
	}
	switch {
	case r.w.Deaf && len(j.tasks)+len(j.news) > 0:
		r.deaf(j)
	case j.refused:
		// What stands stays; nothing new is tried.
		j.tasks, j.news = nil, nil
		r.refuse(j, j.state.Status.Reason, j.state.Status.Message)
	}
}

// newestOf are the newest contracts of each replica and part.
func newestOf(live []*v1alpha1.Contract) map[[2]int32]*v1alpha1.Contract {
	out := map[[2]int32]*v1alpha1.Contract{}
	for _, c := range live {
		k := [2]int32{c.Spec.Intent.Replica, c.Spec.Intent.Part}
		if was := out[k]; was == nil || was.Spec.Intent.Ordinal < c.Spec.Intent.Ordinal {
			out[k] = c
		}
	}
	return out
}

// tasksFor is what a replica needs that has these contracts.
func (r *round) tasksFor(j *job, replica int32, list []*v1alpha1.Contract) []task {
	var c *v1alpha1.Contract
	if len(list) > 0 {
		if c = list[0]; c.Spec.Intent.Of > 0 {
			return r.partTasks(j, replica, list)
		}
	}
	if t := r.taskFor(j, replica, c); t != nil {
		return []task{*t}
	}
	return nil
}

// taskFor is what a replica needs, nil when it has it.
func (r *round) taskFor(j *job, replica int32, c *v1alpha1.Contract) *task {
	if c == nil {
		return &task{kind: fresh, replica: replica}
	}
	o := r.offerOf(c)
	if r.cut[c.Metadata.Name] {
		j.drop(r, c, v1alpha1.PhaseReleased, CodeBudget, "the tenant's budget is at its limit")
		return &task{kind: fresh, replica: replica}
	}
	if r.refusedUnused(j, c) {
		return &task{kind: fresh, replica: replica, old: c}
	}
	if t := r.failoverOf(replica, c); t != nil {
		return t
	}
	if c = r.interrupt(j, r.record(j, c)); c.Status.Displaced != nil && !r.w.Deaf {
		return &task{kind: leave, replica: replica, old: c}
	}
	if o != nil && !o.LeaveBy.IsZero() && !r.w.Deaf {
		r.due(o.LeaveBy)
		return &task{kind: move, replica: replica, old: c}
	}
	end := c.Spec.Term.End
	if c.Spec.Intent.Digest != j.in.Digest || c.Spec.Consumer != j.consumer || c.Spec.Intent.Path != j.in.Path || c.Spec.Intent.Name != j.name ||
		(!end.IsZero() && !end.After(r.now.Time)) {
		return &task{kind: adapt, replica: replica, old: c}
	}
	return nil
}

// final reports whether the intent was refused for good: it has waited long
// enough, or was never meant to wait. Changing its file tries again.
func (j *job) final() bool {
	s := &j.state.Status
	if s.State != v1alpha1.IntentRefused {
		return false
	}
	switch s.Reason {
	case CodeQueueTimeout:
		return true
	case CodeNothingFits, CodeGang, CodeQuota, CodeBudget, CodeIntentBudget, CodeSpread, CodeTogether, CodeApart:
		return j.in.Spec.Queue.Policy == "fail"
	}
	return false
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
