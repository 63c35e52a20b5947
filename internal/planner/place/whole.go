package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// fillWhole does all of a job's tasks in one domain where nothing of it stays where it
// is, or where it changed so that its domain no longer holds all. It reports whether that
// is done; else how the tasks are done one by one.
func fillWhole(r *Placer, j *draft.Job, q Request) (Request, bool) {
	w, ok := Shares(r, j)
	if !ok || q.in.how != keepsHome || len(j.Live) == 0 {
		return q, false
	}
	switch {
	case AllLeave(r, j):
		if fillInOne(r, j, q, w) {
			return q, true
		}
		if w.Required {
			q.in = domainChoice{how: isNowhere, said: fmt.Sprintf("no %s has room for all %s", w.String(), said.Replicas(j.Concerned()))}
		}
	case w.Required && j.Gang() && !steps(j) && j.AllChanges(nil):
		return q, fillHere(r, j, q) || fillInOne(r, j, q, w)
	case w.Required && j.Gang() && !steps(j) && r.By(draft.RulesEditsStay) && j.AllChanges(Leaving(r, j)) && (fillHere(r, j, q) || fillInOne(r, j, q, w)):
		return q, true
	case w.Required && j.Gang() && (j.In.Spec.Split == nil || r.By(draft.RulesTogetherMoves)):
		return q, moveWhole(r, j, q, w)
	}
	return q, false
}

// fillHere does all of a job's tasks one by one, or none.
func fillHere(r *Placer, j *draft.Job, q Request) bool {
	return r.Try(func() bool {
		if r.By(draft.RulesEditsStay) {
			r.EditJob(j) // why it is not done here is not why it goes elsewhere
		}
		fillEach(r, j, q)
		return len(j.Tasks) == 0
	})
}

// steps reports whether a change of a job's intent is rolled out step by step.
func steps(j *draft.Job) bool {
	_, ok := j.In.Spec.Update.Steps()
	return ok
}

// AllLeave reports whether all that a job has goes elsewhere if it can.
func AllLeave(r *Placer, j *draft.Job) bool {
	leaves := Leaving(r, j)
	return !slices.ContainsFunc(j.Live, func(c *v1alpha1.Contract) bool { return !leaves[c] })
}

// fillInOne does all of a job's tasks in the best domain that holds all, or nothing.
func fillInOne(r *Placer, j *draft.Job, q Request, w domain.Kind) bool {
	whole := draft.DividedAgain(j)
	if whole == nil || !r.By(draft.RulesTogetherMoves) {
		return fillAsOne(r, j, q, w)
	}
	return r.Try(func() bool {
		r.EditJob(j)
		j.Tasks = whole
		return fillAsOne(r, j, q, w)
	})
}

func fillAsOne(r *Placer, j *draft.Job, q Request, w domain.Kind) bool {
	tasks := j.Tasks
	for alt := range q.alternatives(j) {
		x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(tasks), j.Live...), within: w, alt: alt, n: len(tasks), going: j.Live}
		if x.each(func(in Request) bool {
			in.spending, in.Unasked = q.spending, q.Unasked
			return r.Try(func() bool {
				r.EditJob(j)
				fillEach(r, j, in)
				return len(j.Tasks) == 0
			})
		}) {
			return true
		}
	}
	return false
}

// fillShared places replicas that have nothing one by one in the domain with room for
// the most of them. done: else it is the caller's to place them.
func fillShared(r *Placer, j *draft.Job, q Request, news []draft.Task) (left []draft.Task, done bool) {
	w, ok := Shares(r, j)
	if !ok || q.in.how != keepsHome || home(r, j, w, nil, nil) != "" {
		return nil, false
	}
	for alt := range q.alternatives(j) {
		x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(news)), within: w, alt: alt, n: len(news)}
		tried := 0
		for _, d := range x.count() {
			if tried++; d.Room == 0 || tried > domainsTried {
				break
			}
			before := len(j.Open)
			left = fillOneByOne(r, j, q.Keeping(d.Domain), news)
			if len(left) == len(news) {
				j.Open = j.Open[:before]
				continue
			}
			if len(left) > 0 && !w.Required {
				j.Open = j.Open[:before]
				left = fillOneByOne(r, j, q.anywhere(), left)
			}
			return left, true
		}
	}
	return nil, false
}

// EachDomain are the requests for a job that must share a domain and has none yet, one
// for each of at most so many domains that could hold all of it if nothing else was
// there, those with the most room first; the request itself for other jobs.
func EachDomain(r *Placer, j *draft.Job, q Request, most int) []Request {
	w, ok := Shares(r, j)
	if !ok || !w.Required || q.in.how != keepsHome || len(j.Tasks) < 2 || home(r, j, w, nil, nil) != "" {
		return []Request{q}
	}
	x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(j.Tasks)), within: w, n: len(j.Tasks)}
	room := map[string]int{}
	for _, d := range x.count() {
		room[d.Domain] = d.Room
	}
	whole := map[string]int{}
	s := r.ClassFor(j, q, 0)
	w.Pooled = rules.Pooled(&r.Draft, s)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" {
			continue
		}
		for _, d := range w.At(c.Offer) {
			whole[d] += layout.RoomInAll(r.Match, s.Request, c, x.n-min(whole[d], x.n), match.NodesIn(c.Offer, w.By, w.Label, d))
		}
	}
	list := draft.SortedNames(whole)
	list = slices.DeleteFunc(list, func(d string) bool { return whole[d] < x.n })
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(room[b], room[a]) })
	var out []Request
	for _, d := range list[:min(len(list), most)] {
		out = append(out, q.Keeping(d))
	}
	return out
}

// SharedRules are the rules on the domain that a job's replicas share alone, nil for none.
func SharedRules(r *Placer, j *draft.Job, q Request, s *match.Class) *Rules {
	if within := withinRules(r, j, q, s, nil, nil); len(within) > 0 {
		return &Rules{Within: within}
	}
	return nil
}

// Home is the domain in which all that a job has is; "" where it is in several, or in
// none.
func Home(r *Placer, j *draft.Job, w domain.Kind) string {
	home := ""
	for i, c := range j.Live {
		d := rules.DomainOf(&r.Draft, c, w.By, w.Label)
		if i > 0 && d != home {
			return ""
		}
		home = d
	}
	return home
}

// A replica that a gang lost is replaced in the gang's domain, or waits there. After
// update.moveAfter (Fleet.defaults.moveAfter; never without either) all of the gang moves to
// the best domain that holds it whole, in one commit: what it has is released as the new
// contracts are placed, so that quota and budgets count it once. While no domain holds all,
// nothing moves, and the lost replica goes on waiting.
//
// Spot capacity that its provider takes back from some of a gang's replicas takes all of it:
// all move at once if a domain holds all, and else end with the notice.

// moveWhole does a job's tasks where some of its replicas are lost or must leave and others
// stay: in its domain, or all in another. It reports whether the tasks are seen to.
func moveWhole(r *Placer, j *draft.Job, q Request, w domain.Kind) bool {
	if r.By(draft.RulesGangsLeaveWhole) && slices.ContainsFunc(j.Tasks, r.isInterrupted) {
		leaveWhole(r, j, q, w)
		return true
	}
	wait, field := draft.MoveAfter(&r.Draft, j)
	if wait == 0 {
		return false
	}
	lost := draft.LostSince(&r.Draft, j)
	if lost.IsZero() {
		return false
	}
	at, field := v1alpha1.TimeOf(lost.Add(wait)), fmt.Sprintf("(%s %s)", field, v1alpha1.Duration{Duration: wait})
	if at.After(r.Now.Time) {
		fillEach(r, j, q)
		if len(j.Open) > 0 {
			r.Due(at)
			add(j, fmt.Sprintf("; all replicas move to another %s at %s %s", w.String(), draft.Stamp(at), field))
		}
		return true
	}
	if fillHere(r, j, q) || followAll(r, j, q, w) {
		return true
	}
	fillEach(r, j, q)
	add(j, fmt.Sprintf("; no other %s has room for all %d replicas %s", w.String(), j.Replicas(), field))
	return true
}

// isInterrupted reports whether a task is of spot capacity that its provider takes back.
func (r *Placer) isInterrupted(t draft.Task) bool {
	if t.Kind != draft.TaskLeave {
		return false
	}
	d := t.Old.Status.Displaced
	return d != nil && d.Cause == v1alpha1.Interrupted && !r.Void(t.Old)
}

// TakenBack is a contract of a job that is on spot capacity which its provider takes back,
// nil where there is none.
func TakenBack(r *Placer, j *draft.Job) *v1alpha1.Contract {
	if i := slices.IndexFunc(j.Tasks, r.isInterrupted); i >= 0 {
		return j.Tasks[i].Old
	}
	return nil
}

// leaveWhole does a job's tasks where a provider takes back spot capacity of some of its
// replicas: in its domain, else all in another, else what has to leave ends with its notice
// and takes the others with it. They are placed again together.
func leaveWhole(r *Placer, j *draft.Job, q Request, w domain.Kind) {
	if fillHere(r, j, q) || followAll(r, j, q, w) {
		return
	}
	before := len(j.Live)
	fillEach(r, j, q)
	ended := slices.ContainsFunc(j.Tasks, func(t draft.Task) bool {
		return t.Kind == draft.TaskFresh && t.Old != nil && t.Old.Status.Displaced != nil && !slices.Contains(j.Live, t.Old)
	})
	if !ended || len(j.Live) == before {
		return
	}
	for _, c := range slices.Clone(j.Live) {
		r.Drop(j, c, v1alpha1.PhaseReleased, lifecycle.CodeWithin, "its gang gives way whole: "+c.Spec.Provider+" takes back the spot capacity of other replicas")
		j.Tasks = slices.DeleteFunc(slices.Clone(j.Tasks), func(t draft.Task) bool { return t.Replica == c.Spec.Intent.Replica })
		j.AddTask(draft.Task{Kind: draft.TaskFresh, Replica: c.Spec.Intent.Replica, Old: c})
	}
}

// add ends the text of why a job waits.
func add(j *draft.Job, text string) {
	if len(j.Open) > 0 {
		f := &j.Open[0]
		f.Text, f.Tail = f.Text+text, f.Tail+len(text)
	}
}

// followAll places all that a job has, and all that it lacks, in one domain, or changes
// nothing.
func followAll(r *Placer, j *draft.Job, q Request, w domain.Kind) bool {
	return r.Try(func() bool {
		r.EditJob(j)
		j.Follow()
		return fillInOne(r, j, q, w)
	})
}

// MustFollow reports whether a lost replica of a gang has waited for update.moveAfter.
func MustFollow(r *Placer, j *draft.Job) bool {
	w, shares := Shares(r, j)
	wait, _ := draft.MoveAfter(&r.Draft, j)
	lost := draft.LostSince(&r.Draft, j)
	return shares && w.Required && j.Gang() && wait > 0 && !lost.IsZero() && !v1alpha1.TimeOf(lost.Add(wait)).After(r.Now.Time)
}
