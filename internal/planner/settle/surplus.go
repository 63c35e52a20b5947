package settle

import (
	"slices"

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
