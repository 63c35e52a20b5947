package settle

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// GivenUp reports which contracts of an intent end because its file asks for less, as far as
// that is decided by what it holds alone: all of one that is suspended or only finds, and the
// replicas beyond the number that is asked for.
func GivenUp(r *Settler, in *model.Intent) func(*v1alpha1.Contract) bool {
	none := func(*v1alpha1.Contract) bool { return false }
	if in == nil || r.W.Ledger.State(in.Metadata.Namespace, in.Metadata.Name) == nil {
		return none
	}
	j := r.NewJob(in, in.Metadata.Namespace, in.Metadata.Name)
	if _, frozen := r.isFrozen(j); frozen || j.Warm() {
		return none
	}
	if in.Spec.Suspend {
		return func(*v1alpha1.Contract) bool { return true }
	}
	if _, unfit := r.Unfit(j); unfit != "" {
		return none
	}
	if j.Finding() {
		return func(*v1alpha1.Contract) bool { return true }
	}
	for _, c := range j.All {
		if c.Status.Phase.Charged() {
			j.Live = append(j.Live, c)
		}
	}
	n := j.Replicas()
	if j.Follows() {
		n = max(in.Spec.Replicas.Max, 1)
	}
	surplus := r.surplusOf(j, int(n))
	return func(c *v1alpha1.Contract) bool { return surplus[c.Spec.Intent.Replica] && c.Status.Phase.Charged() }
}
