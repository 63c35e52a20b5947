package settle

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/parts"
)

// partTasks is what the parts of one replica need.
func (r *Settler) partTasks(j *draft.Job, replica int32, list []*v1alpha1.Contract) []draft.Task {
	of := list[0].Spec.Intent.Of
	if !r.keepsParts(j, list) {
		return []draft.Task{{Kind: draft.TaskRemake, Replica: replica}}
	}
	var out []draft.Task
	missing := of
	taken := map[int32]bool{}
	for _, c := range list {
		i := c.Spec.Intent
		t := r.TaskFor(j, replica, c)
		taken[i.Part] = true
		missing -= i.Units
		if t != nil {
			t.Part, t.Units, t.Of = i.Part, i.Units, of
			out = append(out, *t)
		}
	}
	if missing > 0 {
		free := int32(0)
		for taken[free] {
			free++
		}
		out = append(out, draft.Task{Kind: draft.TaskFresh, Replica: replica, Part: free, Units: missing, Of: of})
	}
	return out
}

// keepsParts reports whether a replica may stay in the parts that it has, under
// what its intent now asks for.
func (r *Settler) keepsParts(j *draft.Job, list []*v1alpha1.Contract) bool {
	changed := slices.ContainsFunc(list, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Digest != j.In.Digest })
	if !changed {
		return true
	}
	s := j.In.Spec.Split
	if s == nil || j.In.Spec.VirtualNode.IsShared() || len(list) > int(s.MaxParts) {
		return false
	}
	alts := j.Alternatives()
	return slices.ContainsFunc(alts, func(q v1alpha1.ResourceRequest) bool {
		least := parts.LeastUnits(s, &q)
		return r.SplitUnits(&q) == list[0].Spec.Intent.Of &&
			!slices.ContainsFunc(list, func(c *v1alpha1.Contract) bool { return c.Spec.Intent.Units < least })
	})
}

// tasksFor is what a replica needs that has these contracts.
func (r *Settler) tasksFor(j *draft.Job, replica int32, list []*v1alpha1.Contract) []draft.Task {
	var c *v1alpha1.Contract
	if len(list) > 0 {
		if c = list[0]; c.Spec.Intent.Of > 0 {
			return r.partTasks(j, replica, list)
		}
	}
	if t := r.TaskFor(j, replica, c); t != nil {
		return []draft.Task{*t}
	}
	return nil
}
