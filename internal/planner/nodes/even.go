package nodes

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// even gives each part some of the cores and the memory of a size, because a Node without
// either is never ready: as little as can be, from the part with the most. changed reports
// whether it gave any, ok whether no part is without.
func (x *packing) even(size quantity.Vector) (changed, ok bool) {
	for _, r := range [...]int{quantity.CPU, quantity.Memory} {
		for k := range x.taken {
			if size.At(r) == 0 || x.taken[k].Size.At(r) > 0 {
				continue
			}
			most := 0
			for i := range x.taken {
				if x.taken[i].Size.At(r) > x.taken[most].Size.At(r) {
					most = i
				}
			}
			if x.taken[most].Size.At(r) < 2 || x.left(k).At(r) < 1 {
				return changed, false
			}
			x.taken[most].Size[r]--
			x.taken[k].Size, changed = x.taken[k].Size.Set(r, 1), true
		}
	}
	return changed, true
}
