package market

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Bounds on what a report says of pods.
const (
	maxPending = 2000
	maxNodes   = 5000
	maxIntents = 64
	maxPods    = 1_000_000
)

// CheckDemand finds the first mistake in what a report says of pods; nil says
// nothing and is fine.
func CheckDemand(d *v1alpha1.Demand) error {
	if d == nil {
		return nil
	}
	if len(d.Pending) > maxPending {
		return fmt.Errorf("demand.pending: %d kinds of pods, at most %d", len(d.Pending), maxPending)
	}
	for i, p := range d.Pending {
		if !nameForm.MatchString(p.Namespace) || p.Pods < 1 || p.Pods > maxPods {
			return fmt.Errorf("demand.pending[%d]: a namespace and between 1 and %d pods are needed", i, maxPods)
		}
		if len(p.Intents) == 0 || len(p.Intents) > maxIntents {
			return fmt.Errorf("demand.pending[%d].intents: %d, between 1 and %d are needed", i, len(p.Intents), maxIntents)
		}
		for _, name := range p.Intents {
			if !isText(name, maxText) {
				return fmt.Errorf("demand.pending[%d].intents: %.80q is not an intent", i, name)
			}
		}
		if err := checkResources("demand.requests", p.Requests); err != nil {
			return err
		}
	}
	if len(d.Nodes) > maxNodes {
		return fmt.Errorf("demand.nodes: %d, at most %d", len(d.Nodes), maxNodes)
	}
	for name, n := range d.Nodes {
		if !isText(name, maxText) || n < 0 || n > maxPods {
			return fmt.Errorf("demand.nodes: %.80q: a node's name and between 0 and %d pods are needed", name, maxPods)
		}
	}
	return nil
}

// SetDemand takes what a cluster's newest full report says of the pods that use
// contracts or wait for them, nil for nothing. Since when a node has no pods is
// measured by our clock; after a restart it begins anew, which only delays what
// follows from it. An error is a mistake in it, and changes nothing.
func (m *Market) SetDemand(cluster string, d *v1alpha1.Demand) error {
	if err := CheckDemand(d); err != nil {
		return fmt.Errorf("report of %s: %w", cluster, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers[cluster]
	if p == nil {
		return nil // its report was not taken
	}
	next := follow(p.demand, d, v1alpha1.TimeOf(m.opts.Now()))
	if reflect.DeepEqual(p.demand, next) {
		return nil
	}
	p.demand = next
	old := m.current.Load()
	now := *old
	now.demand = maps.Clone(old.demand)
	if now.demand == nil {
		now.demand = map[string]*v1alpha1.DemandSeen{}
	}
	if next == nil {
		delete(now.demand, cluster)
	} else {
		now.demand[cluster] = next
	}
	now.generation++
	m.current.Store(&now)
	m.signal()
	return nil
}

// follow is a report's demand, with since when its idle nodes are idle.
func follow(was *v1alpha1.DemandSeen, d *v1alpha1.Demand, now v1alpha1.Time) *v1alpha1.DemandSeen {
	if d == nil {
		return nil
	}
	next := &v1alpha1.DemandSeen{Pending: d.Pending, Nodes: make(map[string]v1alpha1.NodeUse, len(d.Nodes))}
	for name, pods := range d.Nodes {
		use := v1alpha1.NodeUse{Pods: pods}
		if pods == 0 {
			use.IdleSince = now
			if was != nil {
				if before, known := was.Nodes[name]; known && before.Pods == 0 {
					use.IdleSince = before.IdleSince
				}
			}
		}
		next.Nodes[name] = use
	}
	return next
}

// Demand is what the agents that are heard say of the pods that use contracts
// or wait for them, by cluster.
func (s *Snapshot) Demand() map[string]*v1alpha1.DemandSeen {
	out := make(map[string]*v1alpha1.DemandSeen, len(s.demand))
	for name, d := range s.demand {
		if s.Provider(name).State == model.Fresh {
			out[name] = d
		}
	}
	return out
}

// Pods are the pods on virtual nodes as each consumer's agent last reported them, by
// cluster in order, those of agents that have fallen silent too: when each was heard is
// said with it.
func (m *Market) Pods() []wire.PodsReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []wire.PodsReport{}
	for _, name := range sortedKeys(m.providers) {
		p := m.providers[name]
		if p.demand == nil {
			continue
		}
		r := wire.PodsReport{Cluster: name, Contracts: make(map[string]int64, len(p.demand.Nodes))}
		if !p.unheard {
			r.At = v1alpha1.TimeOf(p.heard)
		}
		for node, use := range p.demand.Nodes {
			r.Contracts[node] = use.Pods
		}
		out = append(out, r)
	}
	return out
}
