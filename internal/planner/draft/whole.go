package draft

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// AllChanges reports whether all that a job has is changed with its intent, but for what leaves.
func (j *Job) AllChanges(leaves map[*v1alpha1.Contract]bool) bool {
	changes := map[*v1alpha1.Contract]bool{}
	remade := map[int32]bool{}
	for i := range j.Tasks {
		switch t := &j.Tasks[i]; t.Kind {
		case TaskAdapt:
			changes[t.Old] = true
		case TaskRemake:
			remade[t.Replica] = true
		}
	}
	for _, c := range j.Live {
		if !leaves[c] && !changes[c] && !remade[c.Spec.Intent.Replica] {
			return false
		}
	}
	return true
}

// Concerned is of how many replicas a job's tasks are.
func (j *Job) Concerned() int {
	seen := map[int32]bool{}
	for i := range j.Tasks {
		seen[j.Tasks[i].Replica] = true
	}
	return len(seen)
}
