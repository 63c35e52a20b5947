package settle

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// An intent may ask for ten thousand replicas, and a thousand intents may do
// so. A task for each of them costs more than to find that nothing fits, so a
// replica that has nothing has no task of its own: the tasks of such replicas
// differ by their numbers alone, and all jobs share one list of them. Where some
// replicas exist and others do not, the list's part is copied when the job has
// its turn (begin) and not before.

// wantReplicas notes what n replicas need: those that exist, and the lowest
// numbers that are free.
func (r *Settler) wantReplicas(j *draft.Job, n int, stand map[int32][]*v1alpha1.Contract) {
	list := slices.Sorted(maps.Keys(stand))
	missing, next := n-len(list), int32(0)
	for _, i := range list {
		for ; missing > 0 && next < i; next++ {
			j.Tasks = append(j.Tasks, draft.Task{Kind: draft.TaskFresh, Replica: next})
			missing--
		}
		next = max(next, i+1)
		j.Tasks = append(j.Tasks, r.tasksFor(j, i, stand[i])...)
	}
	if missing <= 0 {
		return
	}
	j.News = r.Nothings(next, missing)
	if len(j.Tasks) == 0 || r.Turns > 0 { // alone they need no copy; a job that is woken late has its turn
		j.Begin()
	}
}
