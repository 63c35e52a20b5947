package settle

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// surplusOf picks which of an intent's replicas go when it wants only n: the
// highest numbers, but with placement.spread the highest whose going leaves
// the others spread.
func (r *Settler) surplusOf(j *draft.Job, n int) map[int32]bool {
	gone := map[int32]bool{}
	var replicas []int32
	for _, c := range j.Live {
		replicas = append(replicas, c.Spec.Intent.Replica)
	}
	slices.Sort(replicas)
	replicas = slices.Compact(replicas)
	for len(replicas)-len(gone) > n {
		pick := int32(-1)
		for _, k := range slices.Backward(replicas) {
			if gone[k] {
				continue
			}
			if pick < 0 {
				pick = k
			}
			if r.spreadWithout(j, gone, k) {
				pick = k
				break
			}
		}
		gone[pick] = true
	}
	return gone
}

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

// spreadWithout reports whether the replicas but those gone and one more are
// spread as the intent asks, over the domains in which they are.
func (r *Settler) spreadWithout(j *draft.Job, gone map[int32]bool, one int32) bool {
	for i := range j.In.Spec.Placement.Spread {
		sp := &j.In.Spec.Placement.Spread[i]
		used := map[string]map[int32]bool{}
		for _, c := range j.Live {
			d := rules.DomainOf(&r.Draft, c, sp.By, sp.Label)
			if used[d] == nil {
				used[d] = map[int32]bool{}
			}
			if k := c.Spec.Intent.Replica; !gone[k] && k != one {
				used[d][k] = true
			}
		}
		least, most, inUse := len(j.Live), 0, 0
		for _, set := range used {
			least, most = min(least, len(set)), max(most, len(set))
			if len(set) > 0 {
				inUse++
			}
		}
		if most-least > int(max(sp.MaxSkew, 1)) || inUse < min(int(sp.MinDomains), len(used)) && len(used) > 1 && most > 1 {
			return false
		}
	}
	return true
}
