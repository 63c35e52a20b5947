package parts

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// LeastUnits is how many units a part of a request has at the least.
func LeastUnits(s *v1alpha1.Split, q *v1alpha1.ResourceRequest) int64 {
	if q.GPU == nil {
		return 1
	}
	return max(int64(s.MinGPU), 1)
}

// Share is a request's share of units of the of that the whole has, rounded up; what the
// request leaves open is of defaults.
func Share(names *quantity.Names, defaults quantity.Vector, q *v1alpha1.ResourceRequest, units, of int64) v1alpha1.ResourceRequest {
	out := v1alpha1.ResourceRequest{Named: v1alpha1.Resources{}, PerPod: q.PerPod}
	if q.GPU != nil {
		g := *q.GPU
		g.Count = int32(units)
		out.GPU = &g
	}
	take := func(name string, n int64) {
		part := quantity.Wide{}.AddProduct(n, units, 1).Add(uint64(of) - 1).Quo(uint64(of))
		if name == v1alpha1.Memory || name == v1alpha1.EphemeralStorage {
			const mebi = 1 << 20 // whole MiB read better, and no kernel gives less than a page
			part = (part + mebi - 1) / mebi * mebi
		}
		out.Named[name] = v1alpha1.AmountOf(part)
	}
	for i := range quantity.GPU {
		take(names.Name(i), defaults.At(i))
	}
	for _, name := range q.Named.Names() {
		take(name, q.Named[name].Int64())
	}
	return out
}
