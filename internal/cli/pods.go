package cli

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
)

// podState is how many pods use what a contract holds, as its consumer's agent reported.
type podState struct {
	Contract string         `json:"contract"`
	Tenant   string         `json:"tenant"`
	Consumer string         `json:"consumer"`
	Phase    v1alpha1.Phase `json:"phase"`
	// Pods on the contract's virtual nodes, those of DaemonSets left out; absent where no
	// report names one of them.
	Pods *int64 `json:"pods,omitempty"`
	// Reported is when the daemon last heard of the consumer; absent when it has not.
	Reported v1alpha1.Time `json:"reported,omitzero"`
}

// pods are those of each contract that is held; none where no daemon was asked.
func (g *gathered) pods() []podState {
	if g.market.pods == nil {
		return nil
	}
	var out []podState
	for c := range g.ledger.Contracts() {
		if !c.Status.Phase.Held() {
			continue
		}
		s := podState{Contract: c.Metadata.Name, Tenant: c.Metadata.Namespace, Consumer: c.Spec.Consumer, Phase: c.Status.Phase}
		for _, r := range g.market.pods {
			if r.Cluster != c.Spec.Consumer {
				continue
			}
			s.Reported = r.At
			if n, seen := r.Contracts[s.Contract]; seen {
				s.Pods = &n
			}
		}
		out = append(out, s)
	}
	return out
}

func podTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "CONTRACT", "TENANT", "CONSUMER", "PHASE", ">PODS", ">REPORTED")
	for _, s := range p.Pods {
		pods := any("-")
		if s.Pods != nil {
			pods = *s.Pods
		}
		t.Row(s.Contract, s.Tenant, s.Consumer, string(s.Phase), pods, t.Age(s.Reported))
	}
	return t
}
