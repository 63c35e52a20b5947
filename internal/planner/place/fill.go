package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
	"github.com/fleetbroker/fleetbroker/internal/planner/scarcity"
)

// Placer places what intents want.
type Placer struct {
	draft.Draft
	Learned

	// Seats are what may still be moved within its batch.
	Seats []*Seat
	// warm are the jobs of warm pools, found on first use.
	warm []*draft.Job
	// infeasibleUnits remembers units that fit nowhere, and under what that was found.
	infeasibleUnits map[string]infeasible
	// searched are the units that had the least that each has (package looks).
	searched map[string]bool
	// Parts are the looks for parts of replicas so far, by tenant (package looks).
	Parts  map[string]int64
	Scarce *scarcity.Prices // what places are worth to others
	// Made counts the contracts that it made, on trial too.
	Made int64
	// Void reports whether no claimant needs a contract to give way any more.
	Void func(*v1alpha1.Contract) bool
	// Looked is called for each class in which a job is looked for, with its limits.
	Looked func(*draft.Job, *match.Class, *Limits)
	// LookedAhead is the same of a booking, with what an offer is during its term, and why.
	LookedAhead func(j *draft.Job, s *match.Class, l *Limits, look func(*match.Candidate) (match.Candidate, string))
}

// Learned is what a placer leaves to the next round's.
type Learned struct {
	Match    *match.Matcher
	Defaults quantity.Vector // of replicas that leave them open
	// Relatives are the intents with together or apart.
	Relatives map[[2]string]bool
	// Related are the intents that are together or apart; made on first use.
	Related *rules.Relations
}

// New is one in which nothing has happened.
func New(d draft.Draft, base Learned) Placer {
	return Placer{Draft: d, Learned: base, Parts: map[string]int64{}, infeasibleUnits: map[string]infeasible{}, searched: map[string]bool{}}
}

// LookOnly does what a job would do and takes it back, but for what is decided of it
// and what it would still need: stage find changes nothing.
func (r *Placer) LookOnly(j *draft.Job, q Request) {
	m := r.Mark()
	r.Fill(j, q)
	tried := *j
	r.RollbackButDue(m)
	r.EditJob(j)
	j.Dec, j.Tasks, j.Open, j.Started = tried.Dec, tried.Tasks, tried.Open, v1alpha1.Time{}
}

// Fill does what can be done of a job's tasks and leaves the others. It reports whether
// that got anywhere.
func (r *Placer) Fill(j *draft.Job, q Request) (progressed bool) {
	before := r.Advances
	r.EditJob(j)
	j.Open = nil
	q.looks = looksFor(r, j, q)
	if !r.fillUnit(j, q) {
		r.fillTasks(j, q)
	}
	return r.Advances != before
}

// fillTasks is Fill for a job that is placed by itself: by price alone where what places are
// worth to others leaves more undone, or leads to a later alternative.
func (r *Placer) fillTasks(j *draft.Job, q Request) {
	if r.Scarce == nil || len(j.Tasks) < 2 || j.Gang() && !q.Loose && r.IsNothing(j.Tasks) { // tryAll sees to a gang
		r.fillBy(j, q)
		return
	}
	m, chosen := r.Mark(), r.Scarce.Chosen()
	again := func(q Request) (left, alt int) {
		r.RollbackButDue(m)
		m = r.Mark()
		r.EditJob(j)
		r.fillBy(j, q)
		return len(j.Tasks), j.Dec.Alternative
	}
	if left, alt := again(q); left+alt > 0 && r.Scarce.Chosen() != chosen {
		if n, a := again(q.byPrice()); n > left || n == left && a >= alt {
			again(q)
		}
	}
	r.Keep(m)
}

// fillBy is fillTasks by one request.
func (r *Placer) fillBy(j *draft.Job, q Request) {
	if r.IsNothing(j.Tasks) {
		j.Tasks = r.fillNew(j, q, j.Tasks)
		return
	}
	if whole, done := fillWhole(r, j, q); !done {
		fillEach(r, j, whole)
	}
}

// fillEach does what can be done of each of a job's tasks.
func fillEach(r *Placer, j *draft.Job, q Request) {
	var left, news []draft.Task
	for _, t := range j.Tasks {
		if t.Of > 0 {
			if f := r.fillPart(j, q, &t); f != nil {
				j.Open, left = append(j.Open, *f), append(left, t)
			}
			continue
		}
		switch t.Kind {
		case draft.TaskFresh:
			news = append(news, t)
		case draft.TaskRemake:
			if f := r.remake(j, q, t); f != nil {
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskAdapt, draft.TaskFailover, draft.TaskFollow:
			if f := r.failOver(j, q, &t); f != nil {
				if t.Kind == draft.TaskAdapt && !q.DryRun && r.goesFirst(j, t) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskMove:
			if f := r.move(j, q, t); f != nil {
				if !slices.Contains(j.Live, t.Old) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		case draft.TaskLeave:
			if f := r.giveWay(j, q, t); f != nil {
				if !slices.Contains(j.Live, t.Old) {
					t.Kind = draft.TaskFresh
				}
				j.Open, left = append(j.Open, *f), append(left, t)
			}
		}
	}
	if len(news) > 0 {
		left = append(left, r.fillNew(j, q, news)...)
	}
	j.Tasks = left
}

// fillNew places replicas that have nothing: all or none for a gang, else as
// many as fit, minReplicas at the least, the lowest numbers first. It returns those that are left.
func (r *Placer) fillNew(j *draft.Job, q Request, news []draft.Task) (left []draft.Task) {
	if j.Gang() && !q.Loose {
		if f := r.attempts(j, q, news, nil, 0, len(q.alternatives(j))); f != nil {
			j.Open = append(j.Open, *f)
			return news
		}
		return nil
	}
	some := func() bool {
		var done bool
		if left, done = fillShared(r, j, q, news); !done {
			left = fillOneByOne(r, j, q, news)
		}
		return j.Served() >= int(j.In.Spec.MinReplicas)
	}
	if len(j.Live) > 0 || q.Loose || !r.By(draft.RulesMinReplicas) { // what fell below by loss is kept
		some()
	} else if m := r.Mark(); some() {
		r.Keep(m)
	} else {
		open := j.Open
		r.RollbackButDue(m)
		r.EditJob(j)
		j.Open, left = open, news
	}
	return left
}

// fillOneByOne places as many replicas that have nothing as fit, and returns the others.
func fillOneByOne(r *Placer, j *draft.Job, q Request, news []draft.Task) []draft.Task {
	for i := range news {
		if f := r.attempts(j, q, news[i:i+1], nil, 0, len(q.alternatives(j))); f != nil {
			if n := j.Replicas(); n > 1 {
				f.Text = fmt.Sprintf("%d of %d replicas fit; %s", j.Served(), n, f.Text)
			}
			j.Open = append(j.Open, *f)
			return news[i:]
		}
	}
	return nil
}
