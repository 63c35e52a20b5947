package settle

import (
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// DoneText is why an intent whose term has ended waits.
const DoneText = "its term has ended: change its file to place it again"

// Settler decides what needs no offer, and makes tasks of what does.
type Settler struct {
	place.Placer
	// called is what pods that wait ask of intents that follow demand; made on first use.
	called map[[2]string]call
	// Bill is what the round has charged (work.go).
	Bill *bill
	// Bookers are the jobs whose bookings are still to be decided (Ahead).
	Bookers []*draft.Job
	// starts begins what is booked.
	starts ahead.Starts
}

// New is one in which nothing has happened.
func New(p place.Placer) Settler { return Settler{Placer: p} }

// SettleJob decides everything about an intent that needs no offer: what ends,
// what waits, what is refused. What needs one becomes tasks.
func (r *Settler) SettleJob(j *draft.Job) {
	r.ObserveJob(j)
	if why, is := r.isFrozen(j); is {
		r.keepFrozen(j, why)
		return
	}
	r.forced(j)
	if r.Fleet.Suspend {
		j.Silent = true
		j.Settle(draft.Suspend, "", lifecycle.CodeSuspended, "the fleet is suspended: what stands is kept")
		return
	}
	if j.In == nil {
		r.vanished(j)
		return
	}
	if j.In.Spec.Suspend {
		r.suspended(j)
		return
	}
	if code, why := r.Unfit(j); why != "" {
		r.refuse(j, code, why)
		return
	}
	if r.schedule(j) {
		r.plain(j)
	}
}

func (r *Settler) isFrozen(j *draft.Job) (string, bool) {
	if !r.Frozen.Any {
		return "", false
	}
	paths := make([]string, 0, 4)
	if j.In != nil {
		paths = append(paths, j.In.Path)
	}
	if j.State != nil {
		paths = append(paths, j.State.Status.Path)
	}
	for _, c := range j.All {
		if c.Status.Phase.Held() {
			paths = append(paths, c.Spec.Intent.Path)
		}
	}
	return r.Frozen.Why(j.TenantName, j.Name, paths...)
}

// vanished releases what an intent held that is no more.
func (r *Settler) vanished(j *draft.Job) {
	r.HoldToTerms(j)
	if len(j.Live)+len(j.Booked) > 0 && r.HeldBack.Tenant(j.TenantName) {
		j.Silent = true
		j.Settle(draft.Keep, "", lifecycle.CodeHeldBack, "the intent is gone, but too many contracts would end at once")
		return
	}
	if len(j.Live)+len(j.Booked) > 0 {
		by := ""
		if who := r.W.RemovedBy[append(slices.Clone(j.Live), j.Booked...)[0].Spec.Intent.Path]; who != "" {
			by = " by " + who
		}
		r.ReleaseAll(j, v1alpha1.PhaseReleased, lifecycle.CodeRemoved, "the intent was removed"+by)
		j.Settle(draft.Release, v1alpha1.IntentReleasing, lifecycle.CodeRemoved, "intent removed%s", by)
		return
	}
	j.Gone = len(j.All) == 0
	j.Settle(draft.Keep, v1alpha1.IntentReleasing, lifecycle.CodeRemoved, "intent removed, being released")
}

func (r *Settler) suspended(j *draft.Job) {
	if len(j.Live)+len(j.Booked) > 0 {
		why := givenBack(j.In)
		if why == "" {
			why = "the intent is suspended"
		}
		r.ReleaseAll(j, v1alpha1.PhaseReleased, lifecycle.CodeSuspended, why)
	}
	j.Started = v1alpha1.Time{}
	j.Dec.Considered = 0 // no offer was looked at
	j.Settle(draft.Suspend, v1alpha1.IntentSuspended, lifecycle.CodeSuspended, "%s", SuspendedText(j.In))
}

// SuspendedText is why a suspended intent gets nothing.
func SuspendedText(in *model.Intent) string {
	if by := givenBack(in); by != "" {
		return by
	}
	return "spec.suspend is true: it gets no capacity until that is removed"
}

// givenBack is who suspended what came through the API: the cluster that asked for it,
// and nobody else; "" where an intent is a file of its own.
func givenBack(in *model.Intent) string {
	if by := in.Metadata.Annotations[v1alpha1.AnnotationRequestedBy]; by != "" {
		return "given back by cluster " + by
	}
	return ""
}

// Unfit is why an intent cannot be acted on at all.
func (r *Settler) Unfit(j *draft.Job) (code, why string) {
	if j.In.Problem != "" {
		if code = j.In.ProblemCode; code == "" {
			code = lifecycle.CodeInvalid
		}
		return code, j.In.Problem
	}
	if !j.Tenant.Known {
		return lifecycle.CodeUnknownTenant, "there is no tenant " + j.TenantName + ": add tenants/" + j.TenantName + ".yaml"
	}
	c := r.W.Clusters[j.Consumer]
	switch {
	case j.Consumer == "":
		return lifecycle.CodeConsumer, "it names no consumer and its tenant has none: set spec.consumer"
	case !slices.Contains(j.Tenant.Spec.Consumers, j.Consumer):
		return lifecycle.CodeConsumer, "tenant " + j.TenantName + " may not have capacity in " + j.Consumer + ": its consumers are " + strings.Join(j.Tenant.Spec.Consumers, ", ")
	case c == nil && r.Frozen.Cluster(j.Consumer) != "" && r.By(draft.RulesEndNamed):
		return lifecycle.CodeConsumer, "the file of cluster " + j.Consumer + " cannot be read: " + r.Frozen.Cluster(j.Consumer)
	case c == nil:
		return lifecycle.CodeConsumer, "cluster " + j.Consumer + " is unknown: add clusters/" + j.Consumer + ".yaml with the role consumer"
	case !c.HasRole("consumer"):
		return lifecycle.CodeConsumer, "cluster " + j.Consumer + " is no consumer: add consumer to spec.roles in clusters/" + j.Consumer + ".yaml"
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
func (r *Settler) schedule(j *draft.Job) bool {
	if r.isOver(j) {
		return false
	}
	s := &j.In.Spec.Schedule
	if s.Book && r.By(draft.RulesBookings) && !(j.Finding() && r.By(draft.RulesAgain)) {
		if !r.books(j) {
			return false
		}
	} else {
		cancelBookings(r, j)
	}
	started := j.Started
	if started.IsZero() {
		started = r.Now
	}
	life := r.LifeEnd(j, started)
	if !r.lasts(j, life) {
		return false
	}
	at := lifecycle.FirstStart(r.Books, s, r.Now)
	if j.Started.IsZero() && at.After(r.Now.Time) {
		if why := lifecycle.StartsTooLate(s, r.BoundsOf(j), at); why != "" {
			r.refuse(j, lifecycle.CodeDeadline, why)
			return false
		}
	}
	if s.NotBefore.After(r.Now.Time) && j.Finding() && r.By(draft.RulesAgain) {
		r.ReleaseAll(j, v1alpha1.PhaseReleased, lifecycle.CodeStageFind, "stage find holds nothing")
	}
	if s.NotBefore.After(r.Now.Time) && len(j.Live) == 0 {
		r.Due(s.NotBefore)
		if r.By(draft.RulesBookings) {
			return r.wait(j, lifecycle.CodeNotBefore, promisesNothing(at, s))
		}
		j.Dec.Expected, j.Dec.Estimated = at, true
		return r.wait(j, lifecycle.CodeNotBefore, "it starts "+draft.Stamp(at))
	}
	open, until, next := lifecycle.OpenAt(r.Books, s.Windows, r.Now)
	if !open {
		r.Due(next)
		r.ReleaseAll(j, v1alpha1.PhaseReleased, lifecycle.CodeWindow, "its window has closed")
		j.Dec.Expected, j.Dec.Estimated = next, true
		return r.wait(j, lifecycle.CodeWindow, "its window opens "+draft.Stamp(next))
	}
	j.End = lifecycle.Earlier(life.End, until)
	if !j.End.IsZero() {
		j.Seconds = int64(j.End.Sub(r.Now.Time) / time.Second)
	}
	r.Due(until)
	for _, c := range slices.Clone(j.Live) {
		end := c.Spec.Term.End
		r.Due(end)
		if !end.IsZero() && !end.After(r.Now.Time) && r.cut(j, c) {
			continue
		}
		if !end.IsZero() && !end.After(r.Now.Time) && len(s.Windows) == 0 && c.Spec.Intent.Digest == j.In.Digest {
			return r.expire(j, "its budget.maxTotal is spent")
		}
	}
	return true
}

// WaitsForStart settles a job that has come to hold nothing in this round, and may not start
// yet: it waits for its start, or books it, as one that held nothing before. It reports
// whether it did. (While it holds something, what it loses is replaced.)
func WaitsForStart(r *Settler, j *draft.Job) bool {
	if !r.By(draft.RulesAgain) || len(j.Live) > 0 || j.In == nil || j.Finding() || j.Warm() || !j.In.Spec.Schedule.NotBefore.After(r.Now.Time) {
		return false
	}
	r.EditJob(j)
	j.Tasks, j.News, j.Open = nil, nil, nil
	return !r.schedule(j)
}

// cancelBookings gives back what is booked where the file no longer books.
func cancelBookings(r *Settler, j *draft.Job) {
	for _, c := range slices.Clone(j.Booked) {
		draft.OnAxis(&r.Draft).CancelBooking(j, c, v1alpha1.PhaseReleased, lifecycle.CodeChanged, "the intent changed")
	}
}

// isOver reports whether an intent, as its file reads, has had its term or was refused for
// good, and settles it so.
func (r *Settler) isOver(j *draft.Job) bool {
	same := j.State != nil && j.State.Status.Digest == j.In.Digest
	if j.State != nil && j.State.Status.State == v1alpha1.IntentDone {
		if same {
			r.ReleaseAll(j, v1alpha1.PhaseExpired, lifecycle.CodeTermEnded, "")
			j.Settle(draft.Done, v1alpha1.IntentDone, j.State.Status.Reason, DoneText)
			return true
		}
		j.Started = v1alpha1.Time{}
	}
	if j.Refused = same && final(j); j.Refused && len(j.Live)+len(j.Booked) == 0 {
		r.refuse(j, j.State.Status.Reason, j.State.Status.Message)
		return true
	}
	return false
}

// lasts reports whether a term goes on, or may begin, and settles an intent of which it
// does not.
func (r *Settler) lasts(j *draft.Job, term lifecycle.Term) bool {
	switch {
	case term.Ends(r.Now) && j.Started.IsZero():
		r.refuse(j, lifecycle.CodeDeadline, "its deadline "+draft.Stamp(term.End)+" has passed")
		return false
	case term.Ends(r.Now):
		return r.expire(j, "its term ended "+draft.Stamp(term.End))
	case term.Refused != "":
		r.refuse(j, term.Code, term.Refused)
		return false
	case !j.Started.IsZero() && !term.End.IsZero():
		r.Due(term.End) // also while a window is closed and no contract runs
	}
	return true
}

// plain compares what the intent holds with what it wants.
func (r *Settler) plain(j *draft.Job) {
	if j.Warm() {
		r.size(j)
	}
	n := j.Replicas()
	if j.In.Spec.Stage == v1alpha1.StageFind {
		r.ReleaseAll(j, v1alpha1.PhaseReleased, lifecycle.CodeStageFind, "stage find holds nothing")
		n = max(n, 1)
	}
	surplus, fewer := r.surplusOf(j, int(n)), "the intent wants fewer replicas"
	if j.Follows() && !j.Finding() {
		n, surplus, fewer = r.follow(j)
	}
	byReplica := map[int32][]*v1alpha1.Contract{}
	newest := newestOf(j.Live)
	for _, c := range slices.Clone(j.Live) {
		i := c.Spec.Intent
		switch {
		case surplus[i.Replica]:
			r.Drop(j, c, v1alpha1.PhaseReleased, lifecycle.CodeFewer, fewer)
		case r.Stays(j, c, newest[[2]int32{i.Replica, i.Part}]):
		case newest[[2]int32{i.Replica, i.Part}] != c:
			code, why := lifecycle.CodeDuplicate, "a newer contract serves the replica"
			if i.Digest != j.In.Digest && c.Spec.Term.Start.After(r.Now.Time) { // a booking in its lead, given up as one
				code, why = lifecycle.CodeChanged, "the intent changed; "+why
			}
			r.Drop(j, c, v1alpha1.PhaseReleased, code, why)
		default:
			byReplica[i.Replica] = append(byReplica[i.Replica], c)
		}
	}
	r.wantReplicas(j, int(n), byReplica)
	if len(j.Tasks)+len(j.News) > 0 {
		j.Avoid = r.avoided(j)
	}
	switch {
	case r.W.Deaf && len(j.Tasks)+len(j.News) > 0:
		r.deaf(j)
	case j.Refused:
		// What exists stays; nothing new is tried.
		j.Tasks, j.News = nil, nil
		r.refuse(j, j.State.Status.Reason, j.State.Status.Message)
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

// final reports whether the intent was refused for good: it has waited long
// enough, or was never meant to wait. Changing its file tries again.
func final(j *draft.Job) bool {
	s := &j.State.Status
	if s.State != v1alpha1.IntentRefused {
		return false
	}
	switch s.Reason {
	case lifecycle.CodeQueueTimeout:
		return true
	case lifecycle.CodeNothingFits, lifecycle.CodeGang, lifecycle.CodeQuota, lifecycle.CodeBudget, lifecycle.CodeIntentBudget, lifecycle.CodeSpread, lifecycle.CodeWithin, lifecycle.CodeTogether, lifecycle.CodeApart:
		return j.In.Spec.Queue.Policy == "fail"
	}
	return false
}
