package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
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
	case allLeave(r, j):
		if fillInOne(r, j, q, w) {
			return q, true
		}
		if w.Required {
			q.in = domainChoice{how: isNowhere, said: fmt.Sprintf("no %s has room for all %s", w.String(), said.Replicas(j.Concerned()))}
		}
	case w.Required && j.Gang() && j.In.Spec.Update == nil && j.AllChanges():
		inPlace := func() bool {
			fillEach(r, j, q)
			return len(j.Tasks) == 0
		}
		return q, r.Try(inPlace) || fillInOne(r, j, q, w)
	}
	return q, false
}

// allLeave reports whether all that a job has goes elsewhere if it can.
func allLeave(r *Placer, j *draft.Job) bool {
	leaves := leaving(r, j)
	for _, c := range j.Live {
		if !leaves[c] {
			return false
		}
	}
	return true
}

// fillInOne does all of a job's tasks in the best domain that holds all, or nothing.
func fillInOne(r *Placer, j *draft.Job, q Request, w domain.Kind) bool {
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
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" {
			continue
		}
		for _, d := range match.Domains(c.Offer, w.By, w.Label) {
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
func SharedRules(r *Placer, j *draft.Job, q Request) *Rules {
	if within := withinRules(r, j, q, nil, nil); len(within) > 0 {
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
