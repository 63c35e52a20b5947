package within

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	maxKinds   = 2000
	maxIntents = 64
	maxNodes   = 5000
	maxPods    = 1_000_000
	maxText    = 253
	// maxDemand is how many bytes of names all kinds of pods have together: a report has 8 MiB.
	maxDemand = 1 << 20
)

// Pending bounds one kind of pods that wait: who makes a pod may have it tolerate and ask
// for whatever they like.
func Pending(p *v1alpha1.PendingPods) {
	p.Intents = slices.DeleteFunc(p.Intents, func(name string) bool { return len(name) > maxText })
	p.Intents = p.Intents[:min(len(p.Intents), maxIntents)]
	p.Requests = list(p.Requests, nil)
}

// Demand bounds what is reported of pods. Of too many kinds the most frequent are reported.
func Demand(d *v1alpha1.Demand) {
	if len(d.Pending) > maxKinds || names(d.Pending) > maxDemand {
		slices.SortStableFunc(d.Pending, func(a, b v1alpha1.PendingPods) int { return cmp.Compare(b.Pods, a.Pods) })
		d.Pending = d.Pending[:min(len(d.Pending), maxKinds)]
		for names(d.Pending) > maxDemand {
			d.Pending = d.Pending[:len(d.Pending)/2]
		}
	}
	for i := range d.Pending {
		d.Pending[i].Pods = min(d.Pending[i].Pods, maxPods)
	}
	for i, name := range slices.Sorted(maps.Keys(d.Nodes)) {
		if d.Nodes[name] = min(d.Nodes[name], maxPods); i >= maxNodes {
			delete(d.Nodes, name)
		}
	}
}

// names is how many bytes the names in all kinds of pods have, about.
func names(kinds []v1alpha1.PendingPods) (bytes int) {
	for i := range kinds {
		for _, name := range kinds[i].Intents {
			bytes += len(name) + 4
		}
		for name := range kinds[i].Requests {
			bytes += len(name) + 24
		}
	}
	return bytes
}
