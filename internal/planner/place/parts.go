package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// fillPart does what is to be done for one part of a replica.
func (r *Placer) fillPart(j *draft.Job, q Request, t *draft.Task) *draft.Failure {
	q = r.forPart(j, q, portion{t.Part, t.Units, t.Of})
	switch t.Kind {
	case draft.TaskAdapt:
		if len(q.alternatives(j)) == 0 {
			return noAlternative(*t)
		}
		return r.adapt(j, q, *t)
	case draft.TaskFailover, draft.TaskFollow:
		return r.failOver(j, q, t)
	case draft.TaskLeave:
		f := r.giveWay(j, q, *t)
		if f != nil && !slices.Contains(j.Live, t.Old) && r.By(draft.RulesTogetherMoves) {
			t.Kind = draft.TaskFresh
		}
		return f
	case draft.TaskMove:
		f := r.move(j, q, *t)
		if f != nil && !slices.Contains(j.Live, t.Old) {
			t.Kind = draft.TaskFresh
		}
		return f
	}
	f := r.attempts(j, q, []draft.Task{*t}, nil, 0, len(q.alternatives(j)))
	if f != nil {
		f.Text = fmt.Sprintf("part %d of replica %d (%s) is missing; %s", t.Part, t.Replica, unitsText(j, t.Units), f.Text)
	}
	return f
}

// remake places a split replica again as a whole and releases its parts, because its
// intent changed, or because all of its gang goes elsewhere. Until that succeeds they stay.
func (r *Placer) remake(j *draft.Job, q Request, t draft.Task) *draft.Failure {
	if t.Old == nil && r.turnOf(j, t.Replica, nil) == turnLater {
		j.Later++
		return nil
	}
	var parts []*v1alpha1.Contract
	for _, c := range j.Live {
		if c.Spec.Intent.Replica == t.Replica {
			parts = append(parts, c)
		}
	}
	var f *draft.Failure
	placed := r.Try(func() bool {
		r.EditJob(j)
		j.Live = slices.DeleteFunc(slices.Clone(j.Live), func(c *v1alpha1.Contract) bool { return slices.Contains(parts, c) })
		for _, c := range parts {
			r.OffAccount(c)
		}
		if f = r.attempts(j, q, []draft.Task{{Kind: draft.TaskFresh, Replica: t.Replica}}, nil, 0, len(q.alternatives(j))); f != nil {
			return false
		}
		for _, c := range slices.Backward(parts) {
			r.OnAccount(c)
		}
		j.Live = append(j.Live, parts...)
		return true
	})
	if !placed {
		return f
	}
	for _, c := range parts {
		code, text := lifecycle.CodeChanged, "the intent changed"
		if t.Old != nil {
			code, text = r.whyElsewhere(c)
		}
		r.Drop(j, c, endOfCode(code), code, text)
	}
	return nil
}
