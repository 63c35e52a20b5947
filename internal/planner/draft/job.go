package draft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Job is one intent during a round: what it is (asked), what it holds, what it
// needs (wants), and what comes of it (outcome).
type Job struct {
	asked
	holdings
	wants
	outcome
	// Known is how it waits, where that is known from the round before; nil else.
	Known *Known
	// written is the newest mark under which the job was written down (EditJob).
	written Mark
}

// Copy is a job of its own that asks for the same, holds the same and has decided
// nothing: it may be tried with some tasks and thrown away.
func (j *Job) Copy(tasks []Task) *Job {
	k := j.bare()
	k.Live, k.Ordinals, k.Tasks = slices.Clone(j.Live), maps.Clone(j.Ordinals), tasks
	return k
}

// DividedAgain are a job's tasks where each replica that has parts is put together from
// others; nil where none has.
func DividedAgain(j *Job) (out []Task) {
	for i := range j.Live {
		c := j.Live[i]
		if in := &c.Spec.Intent; in.Of > 0 && !slices.ContainsFunc(out, func(t Task) bool { return t.Replica == in.Replica }) {
			out = append(out, Task{Kind: TaskRemake, Replica: in.Replica, Old: c})
		}
	}
	for _, t := range j.Tasks {
		if out != nil && !slices.ContainsFunc(out, func(o Task) bool { return o.Replica == t.Replica }) {
			out = append(out, t)
		}
	}
	return out
}

// bare is a job of its own that asks for the same and holds nothing.
func (j *Job) bare() *Job {
	k := *j
	k.written, k.Known = 0, nil
	k.Booked = nil
	k.Dec, k.Classes, k.Open, k.Live, k.Ordinals, k.Tasks, k.News = Decision{}, Classes{}, nil, nil, nil, nil, nil
	return &k
}

// Asking is a job's intent with another specification.
func (j *Job) Asking(spec v1alpha1.IntentSpec) *model.Intent {
	in, doc := *j.In, *j.In.ResourceIntent
	doc.Spec = spec
	in.ResourceIntent = &doc
	return &in
}

// asked is what is known of an intent when a round begins. Nothing changes it.
type asked struct {
	// In is nil when the intent is no more.
	In               *model.Intent
	TenantName, Name string
	Tenant           *account.Tenant
	Consumer         string
	State            *v1alpha1.IntentState
	FirstSeen        v1alpha1.FirstSeen
	Priority         int32
	All              []*v1alpha1.Contract // in the ledger
}

// holdings are what a job holds.
type holdings struct {
	Live      []*v1alpha1.Contract // charged, current versions
	Booked    []*v1alpha1.Contract // bookings whose term has not begun, current versions
	Releasing int
	Ordinals  map[string]int32
	Started   v1alpha1.Time
}

// wants are what a job still needs.
type wants struct {
	// End of the contracts that are placed now; Seconds until then, 0 for none.
	End     v1alpha1.Time
	Seconds int64
	// Target is how many replicas are wanted of one that follows demand, 0 until known.
	Target int32
	// Sizing is, of a warm pool that follows a forecast, how many slices it wants.
	Sizing *Sizing
	// Grows is why it wants more replicas than it has, "" while it does not.
	Grows string
	// Later is how many replicas are replaced after others.
	Later int
	Alts  []v1alpha1.ResourceRequest
	// Classes of its alternatives.
	Classes Classes
	// Avoid are the offers that are not tried.
	Avoid map[inventory.Key]bool

	Tasks []Task
	// News are the last of its tasks while it has no turn: replicas that have
	// nothing (wantReplicas).
	News []Task
	// Open are tasks that could not be done, and why.
	Open []Failure
}

// Classes are request classes of a job's alternatives, as far as they were looked up,
// for what is spent on them: a memo, made again where something else is asked.
type Classes struct {
	For match.Spending
	// Replayed: they were looked up while the future was replayed.
	Replayed bool
	// Of are the classes by alternative, nil where not looked up.
	Of []*match.Class
}

// outcome is what comes of a job.
type outcome struct {
	Dec Decision
	// Why something is given up, for people, and WhyCode for programs.
	Why, WhyCode string
	Phase        v1alpha1.IntentPhase
	Code, Text   string
	Since        v1alpha1.Time
	// Proposals are moves to better offers.
	Proposals []v1alpha1.Proposal

	Refused    bool   // for good, until its file changes
	Displaced  bool   // it had to give way and was not served since
	Displacing bool   // … and that is noted in this round
	Noticed    bool   // it is given notice in this round that it has to give way
	Silent     bool   // writes no state
	Frozen     bool   // its specification cannot be read: what it holds stays on its terms
	Batched    bool   // placed so that its whole batch costs least
	Seated     bool   // placed so that all its replicas find a place
	Shared     string // the domain that its replicas were placed in together, in words
	Gone       bool   // leaves the ledger's memory

	// Far: no offer nearly does for it, whatever were free; false where nobody looked.
	Far bool
	// Senior: it has waited for too long and goes before its equals.
	Senior bool
	// TurnAt is the pass in which it last had its turn.
	TurnAt int
}

// taskKind is what has to be done for a replica.
type taskKind uint8

// The kinds of tasks.
const (
	TaskFresh    taskKind = iota // place it
	TaskAdapt                    // make its contract what the intent now asks for
	TaskMove                     // place it elsewhere, then release
	TaskRemake                   // place all parts of it again, then release
	TaskFailover                 // the same, because its provider does not serve it
	TaskLeave                    // the same, because it has to give way
	TaskFollow                   // the same, because the rest of its gang goes elsewhere
)

// Task is something that has to be done for a replica.
type Task struct {
	Kind    taskKind
	Replica int32
	// Part of the replica, which is Units of Of; 0 for a whole one.
	Part      int32
	Units, Of int64
	// Old is the contract to change; of a fresh task the one that was lost.
	Old *v1alpha1.Contract
}

// AddTask adds what a round finds out late, in the order in which the next one
// would find it: by replica and part.
func (j *Job) AddTask(t Task) {
	at := len(j.Tasks)
	for at > 0 && cmp.Or(cmp.Compare(j.Tasks[at-1].Replica, t.Replica), cmp.Compare(j.Tasks[at-1].Part, t.Part)) > 0 {
		at--
	}
	j.Tasks = slices.Insert(slices.Clip(j.Tasks), at, t)
}

// SetLine puts another line in the place of one of a job's.
func (r *Draft) SetLine(j *Job, i int, l ContractLine) {
	r.EditJob(j)
	j.Dec.Contracts = Own(r, j.Dec.Contracts)
	j.Dec.Contracts[i] = l
}

// DropTasks takes the tasks that change a contract off a job.
func (j *Job) DropTasks(old *v1alpha1.Contract) {
	of := func(t Task) bool { return t.Old == old }
	if slices.ContainsFunc(j.Tasks, of) {
		j.Tasks = slices.DeleteFunc(slices.Clone(j.Tasks), of)
	}
}

// Offered reports whether what it was given waits for review.
func (j *Job) Offered() bool { return j.In != nil && j.In.Offered }

// ObserveJob moves the intent's contracts along by what is seen of them, and
// sorts out which are charged. Of several for one replica the newest counts.
func (r *Draft) ObserveJob(j *Job) {
	for _, c := range j.All {
		if c.Status.Phase == v1alpha1.PhaseReleasing {
			c = r.Latest(c) // finishReleases has looked at it
		} else {
			c = r.Observe(c)
		}
		switch {
		case c.Status.Phase.Charged():
			j.Live = append(j.Live, c)
		case c.Status.Phase == v1alpha1.PhaseBooked:
			j.Booked = append(j.Booked, c)
		case c.Status.Phase.Held():
			j.Releasing++
		}
	}
	for _, c := range j.Live {
		j.Dec.HourlyBefore = j.Dec.HourlyBefore.Add(r.HourlyOf(c))
	}
}

// ReleaseAll releases everything the intent holds.
func (r *Draft) ReleaseAll(j *Job, target v1alpha1.Phase, code, text string) {
	for _, c := range slices.Clone(j.Live) {
		r.Drop(j, c, target, code, text)
	}
	for _, c := range slices.Clone(j.Booked) {
		OnAxis(r).CancelBooking(j, c, target, code, text)
	}
}

// Drop releases one contract.
func (r *Draft) Drop(j *Job, c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) {
	after := r.Release(c, target, code, text)
	r.EditJob(j)
	r.Replace(j, c, after)
	j.Releasing++
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(after, Release))
	j.Why, j.WhyCode = text, code
}

// Replicas is how many slices the intent wants.
func (j *Job) Replicas() int32 {
	if j.Target > 0 {
		return j.Target
	}
	if j.Warm() {
		return j.Sizing.wanted(j.In.Spec.Replicas.Min)
	}
	return max(j.In.Spec.Replicas.Min, 1)
}

// Finding reports whether the intent only wants to know.
func (j *Job) Finding() bool { return j.In != nil && j.In.Spec.Stage == v1alpha1.StageFind }

// Gang reports whether what is newly placed is placed together or not at all. Of
// an intent that follows demand only its least number of replicas is one.
func (j *Job) Gang() bool {
	return (j.In.Spec.Gang == nil || *j.In.Spec.Gang) && j.Target <= j.Least()
}

// Alternatives are what would do, in order.
func (j *Job) Alternatives() []v1alpha1.ResourceRequest {
	if j.Alts == nil {
		j.Alts = match.Alternatives(&j.In.Spec)
	}
	return j.Alts
}

// Settle ends the job with a decision and a state.
func (j *Job) Settle(action Action, phase v1alpha1.IntentPhase, code, format string, args ...any) {
	j.Dec.Action, j.Phase, j.Code = action, phase, code
	j.Text = fmt.Sprintf(format, args...)
	j.Dec.Code, j.Dec.Reason, j.Dec.Counted = code, j.Text, Span{}
}

// Leaves reports whether something that a job holds has to go elsewhere.
func (j *Job) Leaves() bool {
	return slices.ContainsFunc(j.Tasks, func(t Task) bool { return t.Kind == TaskFailover || t.Kind == TaskLeave || t.Kind == TaskMove })
}

// Follows reports whether an intent's number of replicas follows demand.
func (j *Job) Follows() bool { return j.In != nil && j.In.Spec.Replicas.Range }

// Least is how many replicas an intent wants at the least.
func (j *Job) Least() int32 {
	if j.Follows() {
		return max(j.In.Spec.Replicas.Min, 1)
	}
	return j.Replicas()
}

// ByReplica are contracts by the replica that they serve.
func ByReplica(list []*v1alpha1.Contract) map[int32][]*v1alpha1.Contract {
	out := map[int32][]*v1alpha1.Contract{}
	for _, c := range list {
		out[c.Spec.Intent.Replica] = append(out[c.Spec.Intent.Replica], c)
	}
	return out
}

// OnlyFailovers reports whether all that a job could not do was to move away
// from providers that do not serve it. What it has then stays, Degraded: it
// neither waits in the queue nor is it refused.
func (j *Job) OnlyFailovers() bool {
	return len(j.Tasks) > 0 && !slices.ContainsFunc(j.Tasks, func(t Task) bool { return t.Kind != TaskFailover })
}

// PlaceRules are rules on where a replica may be placed.
type PlaceRules interface {
	// Breaks is the requirement that an offer breaks, "" for none.
	Breaks(*inventory.Offer) string
}

// Failure is a task that could not be done now.
type Failure struct {
	Task Task
	Code string
	Text string
	// Counts is how many bytes of Text count the offers by what they fail, and Tail how
	// many follow these: what is added later goes in front.
	Counts, Tail int
	// Limit is the tenant's whose figures the text has, and these; "" for none.
	Limit, Figures string
	// Rejected counts all offers by the first requirement they fail.
	Rejected map[string]int
	Class    *match.Class
	// Rules that held for the task: what its placer asked of places in
	// addition to the offers' own facts.
	Rules PlaceRules
	// Closest is the domain with the most room for replicas that share one, and how many
	// are missing, in words; "" for others.
	Closest string
	// Fit is for how many replicas it has room.
	Fit int
	// Done is how many tasks before it could be done.
	Done int
}

// CountedIn is where a text counts the offers in which that of the failure begins at
// from.
func (f *Failure) CountedIn(from int) Span {
	if f.Counts == 0 {
		return Span{}
	}
	end := from + len(f.Text) - f.Tail
	return Span{end - f.Counts, end}
}

// FromCounts is the text without what was put in front of its counts.
func (f *Failure) FromCounts() string { return f.Text[f.CountedIn(0).From:] }

// Begin makes the tasks of a job that has its turn.
func (j *Job) Begin() {
	if len(j.Tasks) == 0 {
		j.Tasks = j.News
	} else {
		j.Tasks = append(j.Tasks, j.News...)
	}
	j.News = nil
}

// KeyOfJob is a job's tenant and name.
func KeyOfJob(j *Job) [2]string { return [2]string{j.TenantName, j.Name} }

// Served is how many replicas have all that they should.
func (j *Job) Served() int {
	units := map[int32]int64{}
	for _, c := range j.Live {
		if i := c.Spec.Intent; i.Of == 0 {
			units[i.Replica] = 0
		} else {
			if _, known := units[i.Replica]; !known {
				units[i.Replica] = i.Of
			}
			units[i.Replica] -= i.Units
		}
	}
	n := 0
	for _, missing := range units {
		if missing <= 0 {
			n++
		}
	}
	return n
}

// Warm reports whether a job is a warm pool's.
func (j *Job) Warm() bool { return j.In != nil && j.TenantName == v1alpha1.FleetTenant }

// AddJob adds a job to those that are thought about.
func (r *Draft) AddJob(j *Job) {
	if r.Trying() {
		r.indexJobs() // of those without it, to which a rollback leads
	}
	Set(r, &r.Jobs, append(r.Jobs, j))
	if r.jobsByName != nil {
		SetKey(r, r.jobsByName, KeyOfJob(j), j)
	}
}

// JobOf is the job of an intent in this round, nil when it needs none.
func (r *Draft) JobOf(tenant, name string) *Job {
	r.indexJobs()
	return r.jobsByName[[2]string{tenant, name}]
}

// indexJobs makes the index of jobs by name on first use; AddJob keeps it.
func (r *Draft) indexJobs() {
	if r.jobsByName != nil {
		return
	}
	r.jobsByName = make(map[[2]string]*Job, len(r.Jobs))
	for _, j := range r.Jobs {
		r.jobsByName[KeyOfJob(j)] = j
	}
}

// Lacks reports whether a pool wants more slices than it has or is about to
// make.
func (j *Job) Lacks() bool {
	have := map[int32]bool{}
	for _, c := range j.Live {
		have[c.Spec.Intent.Replica] = true
	}
	for _, t := range j.Tasks {
		have[t.Replica] = true
	}
	return len(have) < int(j.Replicas())
}
