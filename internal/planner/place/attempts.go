package place

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// attempts tries an intent's alternatives from..to-1 in order, each by score and, where
// money is what binds, again with the cheapest first. old, when given, is
// released in exchange. nil is success.
func (r *Placer) attempts(j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, from, to int) *draft.Failure {
	var first *draft.Failure
	if from >= to {
		return noAlternative(tasks[0])
	}
	if q.looks == nil {
		q.looks = looksFor(r, j, q)
	}
	if old == nil || q.nextToOld {
		q = r.For(j, q, len(tasks))
	} else {
		q = r.For(j, q, len(tasks), old)
	}
	for alt := from; alt < to; alt++ {
		f := attemptBy(r, j, q, tasks, old, alt)
		if f == nil {
			r.EditJob(j)
			j.Dec.Alternative = alt
			return nil
		}
		if first == nil {
			first = f
		} else if first.Closest == "" && f.Closest != "" {
			first.Closest = fmt.Sprintf("alternative %d: %s", alt, f.Closest)
		}
	}
	q.looks.Explain(&r.Draft, first)
	return first
}

// attemptBy tries one alternative, in one domain where the job's replicas share one.
func attemptBy(r *Placer, j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, alt int) *draft.Failure {
	if j.In.Spec.Placement.AllowAccelerators && !q.asked && r.By(draft.RulesAskedFirst) {
		next := q
		if next.asked = true; attemptBy(r, j, next, tasks, old, alt) == nil {
			return nil
		}
	}
	w, ok := Shares(r, j)
	if !ok || q.in.how != keepsHome {
		return attemptIn(r, j, q, tasks, old, alt)
	}
	at := home(r, j, w, nil, []*v1alpha1.Contract{old})
	if leaves := Leaving(r, j); at == "" && old != nil && w.Required && len(leaves) > 0 && !leaves[old] && r.By(draft.RulesEditsStay) {
		at = rules.DomainOf(&r.Draft, old, w.By, w.Label) // it does not leave without the others
	}
	if at != "" {
		f := attemptIn(r, j, q.Keeping(at), tasks, old, alt)
		if f == nil {
			return nil
		}
		if w.Required {
			f.Closest = fmt.Sprintf("%s %s, which its replicas share, has no room for %s more", w.String(), at, said.One(len(tasks)))
			return f
		}
		return attemptIn(r, j, q.anywhere(), tasks, old, alt)
	}
	x := wholeSearch{Placer: r, job: j, how: q, within: w, alt: alt, n: len(tasks)}
	if !q.Unasked {
		s := r.ClassFor(j, q, alt)
		l := r.LimitsFor(j, q, s, match.SpendLimits{}, int64(len(tasks)-1))
		l.Rules = r.rulesFor(j, q.anywhere(), s, tasks[0].Replica, nil, old)
		r.Looked(j, s, l)
	}
	if x.each(func(in Request) bool { return x.attempt(in, tasks, old) == nil }) {
		return nil
	}
	if !w.Required {
		return attemptIn(r, j, q.anywhere(), tasks, old, alt)
	}
	return x.failure(tasks, old)
}

// Exchange places a replica again and releases its old contract.
func (r *Placer) Exchange(j *draft.Job, q Request, t draft.Task, from, to int, code, text string) *draft.Failure {
	if f := r.attempts(j, q, []draft.Task{t}, t.Old, from, to); f != nil {
		return f
	}
	r.NoteReplaced(t.Old)
	after := r.Release(t.Old, endOfCode(code), code, text)
	r.EditJob(j)
	r.Replace(j, t.Old, after)
	j.Releasing++
	j.Why, j.WhyCode = text, code
	return nil
}

// endOfCode is the end of a contract that is given up for a reason: Failed
// where its provider let it down, Preempted where it had to give way.
func endOfCode(code string) v1alpha1.Phase {
	switch code {
	case lifecycle.CodeProviderLost, lifecycle.CodeSliceDenied, lifecycle.CodeShrunk, lifecycle.CodeNode, lifecycle.CodeRefused, lifecycle.CodeSLA:
		return v1alpha1.PhaseFailed
	case string(v1alpha1.Preempted), string(v1alpha1.Reclaimed), string(v1alpha1.Interrupted):
		return v1alpha1.PhasePreempted
	}
	return v1alpha1.PhaseReleased
}

// noAlternative is the failure of a part that nothing the intent asks for has
// any more: its number of units is no split of any alternative since the intent
// changed (forPart leaves none). Only parts come to it; a whole replica always has
// the first alternative.
func noAlternative(t draft.Task) *draft.Failure {
	return &draft.Failure{
		Task: t, Code: lifecycle.CodeNothingFits, Rejected: map[string]int{},
		Text: fmt.Sprintf("part %d of replica %d is of a size that the intent no longer asks for", t.Part, t.Replica),
	}
}
