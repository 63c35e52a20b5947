package planner

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// An intent may ask for ten thousand replicas, and a thousand intents may do
// so. A task for each of them costs more than to find that nothing fits, so a
// replica that has nothing has no task of its own: the tasks of such replicas
// differ by their numbers alone, and all jobs share one list of them. Where some
// replicas stand and others do not, the list's part is copied when the job has
// its turn (begin) and not before.

// wantReplicas notes what n replicas need: those that stand, and the lowest
// numbers that are free.
func (r *round) wantReplicas(j *job, n int, stand map[int32][]*v1alpha1.Contract) {
	list := slices.Sorted(maps.Keys(stand))
	missing, next := n-len(list), int32(0)
	for _, i := range list {
		for ; missing > 0 && next < i; next++ {
			j.tasks = append(j.tasks, task{kind: fresh, replica: next})
			missing--
		}
		next = max(next, i+1)
		j.tasks = append(j.tasks, r.tasksFor(j, i, stand[i])...)
	}
	if missing <= 0 {
		return
	}
	j.news = r.nothings(next, missing)
	if len(j.tasks) == 0 || r.turns > 0 { // alone they need no copy; a job that is woken late has its turn
		j.begin()
	}
}

// begin makes the tasks of a job that has its turn.
func (j *job) begin() {
	if len(j.tasks) == 0 {
		j.tasks = j.news
	} else {
		j.tasks = append(j.tasks, j.news...)
	}
	j.news = nil
}

// nothings are the tasks of n replicas from one on that have nothing. They are
// shared: nobody may change them.
func (r *round) nothings(from int32, n int) []task {
	to := int(from) + n
	if to > len(r.nothing) {
		list := make([]task, max(to, 2*len(r.nothing), 16))
		for i := range list {
			list[i] = task{kind: fresh, replica: int32(i)}
		}
		r.nothing = list
	}
	return r.nothing[from:to:to]
}

// isNothing reports whether tasks are a part of the shared list.
func (r *round) isNothing(tasks []task) bool {
	if len(tasks) == 0 {
		return false
	}
	at := int(tasks[0].replica)
	return at < len(r.nothing) && &tasks[0] == &r.nothing[at]
}

// fresh are those of tasks that place what has nothing.
func (r *round) fresh(tasks []task) []task {
	if r.isNothing(tasks) {
		return tasks
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.kind != fresh })
}
