package reconciler

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/requests"
)

// reservationOf is the answer to a request: what the ledger holds for it.
func reservationOf(f *fleet.Fleet, it *model.Intent, contracts []*v1alpha1.Contract, state *v1alpha1.IntentState, commit tree.Hash) wire.Reservation {
	out := wire.Reservation{
		ID: it.Metadata.Name, RequesterID: it.Metadata.Annotations[v1alpha1.AnnotationRequestedBy],
		Requested: asked(&it.Spec.Resources),
		Tenant:    it.Metadata.Namespace, Commit: commit.String(), Path: it.Path,
	}
	if at, err := time.Parse(timeLayout, it.Metadata.Annotations[v1alpha1.AnnotationRequestedAt]); err == nil {
		out.CreatedAt = at
	}
	best := -1
	for _, c := range contracts {
		if !c.Status.Phase.Held() {
			continue
		}
		one := wire.ReservedContract{
			Name: c.Metadata.Name, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Endpoint: endpointOf(f, c), Slice: c.Spec.Slice,
			Resources: c.Spec.Resources, Price: c.Spec.Price, Term: c.Spec.Term, Phase: c.Status.Phase, Decision: &c.Decision,
		}
		out.Contracts = append(out.Contracts, one)
		if best < 0 {
			best = len(out.Contracts) - 1
			out.Contract, out.TargetClusterID = one.Name, one.Provider
			out.Status.ReservedAt, out.Status.ExpiresAt = instant(c.Spec.Term.Start), instant(c.Spec.Term.End)
		}
	}
	out.Status.Phase, out.Status.Message = requests.PhaseOf(out.Contracts, state)
	return out
}

// asked are the quantities of a request in the first form's words.
func asked(q *v1alpha1.ResourceRequest) wire.Quantities {
	named := q.Named.Clone()
	if q.GPU != nil {
		named = named.Add(v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(int64(max(q.GPU.Count, 1)))})
	}
	return texts(named)
}
