package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// What moves as a whole (placement.within).

// fillWhole does all of a job's tasks in one domain where nothing of it stays where it
// is, or where it changed so that its domain no longer holds all. It reports whether that
// is done; else how the tasks are done one by one.
func (r *Placer) fillWhole(j *draft.Job, q Request) (Request, bool) {
	w, ok := r.Shares(j)
	if !ok || q.in.how != keepsHome || len(j.Live) == 0 {
		return q, false
	}
	switch {
	case r.allLeave(j):
		if r.fillInOne(j, q, w) {
			return q, true
		}
		if w.Required {
			q.in = domainChoice{how: isNowhere, said: fmt.Sprintf("no %s has room for all %s", w.kind(), Replicas(replicasOf(j.Tasks)))}
		}
	case w.Required && j.Gang() && j.In.Spec.Update == nil && allChange(j):
		inPlace := func() bool {
			r.fillEach(j, q)
			return len(j.Tasks) == 0
		}
		return q, r.Try(inPlace) || r.fillInOne(j, q, w)
	}
	return q, false
}

// allLeave reports whether all that a job has goes elsewhere if it can.
func (r *Placer) allLeave(j *draft.Job) bool {
	leaves := r.leaving(j)
	for _, c := range j.Live {
		if !leaves[c] {
			return false
		}
	}
	return true
}

// allChange reports whether all that a job has is changed with its intent.
func allChange(j *draft.Job) bool {
	changes := map[*v1alpha1.Contract]bool{}
	remade := map[int32]bool{}
	for i := range j.Tasks {
		switch t := &j.Tasks[i]; t.Kind {
		case draft.TaskAdapt:
			changes[t.Old] = true
		case draft.TaskRemake:
			remade[t.Replica] = true
		}
	}
	for _, c := range j.Live {
		if !changes[c] && !remade[c.Spec.Intent.Replica] {
			return false
		}
	}
	return true
}

// replicasOf is of how many replicas tasks are.
func replicasOf(tasks []draft.Task) int {
	seen := map[int32]bool{}
	for i := range tasks {
		seen[tasks[i].Replica] = true
	}
	return len(seen)
}

// fillInOne does all of a job's tasks in the best domain that holds all, or nothing.
func (r *Placer) fillInOne(j *draft.Job, q Request, w Within) bool {
	tasks := j.Tasks
	for alt := range q.alternatives(j) {
		x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(tasks), j.Live...), within: w, alt: alt, n: len(tasks), going: j.Live}
		if x.each(func(in Request) bool {
			in.spending, in.Unasked = q.spending, q.Unasked
			return r.Try(func() bool {
				r.EditJob(j)
				r.fillEach(j, in)
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
func (r *Placer) fillShared(j *draft.Job, q Request, news []draft.Task) (left []draft.Task, done bool) {
	w, ok := r.Shares(j)
	if !ok || q.in.how != keepsHome || r.home(j, w, nil, nil) != "" {
		return nil, false
	}
	for alt := range q.alternatives(j) {
		x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(news)), within: w, alt: alt, n: len(news)}
		tried := 0
		for _, d := range x.count() {
			if tried++; d.room == 0 || tried > domainsTried {
				break
			}
			before := len(j.Open)
			left = r.fillOneByOne(j, q.Keeping(d.domain), news)
			if len(left) == len(news) {
				j.Open = j.Open[:before]
				continue
			}
			if len(left) > 0 && !w.Required {
				j.Open = j.Open[:before]
				left = r.fillOneByOne(j, q.anywhere(), left)
			}
			return left, true
		}
	}
	return nil, false
}

// EachDomain are the requests for a job that must share a domain and has none yet, one
// for each of at most so many domains that could hold all of it if nothing else was
// there, those with the most room first; the request itself for other jobs.
func (r *Placer) EachDomain(j *draft.Job, q Request, most int) []Request {
	w, ok := r.Shares(j)
	if !ok || !w.Required || q.in.how != keepsHome || len(j.Tasks) < 2 || r.home(j, w, nil, nil) != "" {
		return []Request{q}
	}
	x := wholeSearch{Placer: r, job: j, how: r.For(j, q, len(j.Tasks)), within: w, n: len(j.Tasks)}
	room := map[string]int{}
	for _, d := range x.count() {
		room[d.domain] = d.room
	}
	whole := map[string]int{}
	s := r.ClassFor(j, q, 0)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if d := match.Domain(c.Offer, w.By, w.Label); d != "" && c.FailsMoney == "" {
			whole[d] += timesIn(c, c.Offer.Capacity, x.n-min(whole[d], x.n))
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
func (r *Placer) SharedRules(j *draft.Job, q Request) *Rules {
	if within := r.withinRules(j, q, nil, nil); len(within) > 0 {
		return &Rules{within: within}
	}
	return nil
}

// Home is the domain in which all that a job has is; "" where it is in several, or in
// none.
func (r *Placer) Home(j *draft.Job, w Within) string {
	home := ""
	for i, c := range j.Live {
		d := r.DomainOf(c, w.By, w.Label)
		if i > 0 && d != home {
			return ""
		}
		home = d
	}
	return home
}
