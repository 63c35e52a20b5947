package planner

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// A plan that breaks an invariant does not leave the package: what is wrong is
// taken out of it and reported.
func TestCheckInvariants(t *testing.T) {
	amounts := func(gpu int64) v1alpha1.Resources {
		return v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000), "nvidia.com/gpu": v1alpha1.AmountOf(gpu)}
	}
	contract := func(intent, name string, gpu int64) *v1alpha1.Contract {
		return &v1alpha1.Contract{
			Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"},
			Spec: v1alpha1.ContractSpec{
				Intent: v1alpha1.ContractIntent{Name: intent}, Consumer: "rome", Provider: "paris", Flavor: "h100", Slice: name,
				Resources: amounts(gpu), GPUs: &v1alpha1.ContractGPU{Count: gpu, Model: "nvidia-h100"},
			},
			Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved},
		}
	}
	flavor := &v1alpha1.Flavor{
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"},
		Spec: v1alpha1.FlavorSpec{
			Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(64000), v1alpha1.GPU: v1alpha1.AmountOf(8)},
			GPU:      &v1alpha1.FlavorGPU{Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"},
		},
	}
	eight := int64(8)
	tenant := func(cards *int64) map[string]*v1alpha1.Tenant {
		return map[string]*v1alpha1.Tenant{"vision": {Metadata: v1alpha1.Metadata{Name: "vision"}, Spec: v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{GPU: cards}}}}
	}
	four := int64(4)
	pair := func(gang *bool) []*model.Intent {
		return []*model.Intent{{ResourceIntent: &v1alpha1.ResourceIntent{
			Metadata: v1alpha1.Metadata{Name: "a", Namespace: "vision"},
			Spec:     v1alpha1.IntentSpec{Replicas: v1alpha1.Replicas{Min: 2, Max: 2}, Gang: gang},
		}}}
	}
	no := false
	for name, c := range map[string]struct {
		world draft.World
		make  []*v1alpha1.Contract
		want  string
	}{
		"all is well":       {draft.World{Tenants: tenant(&eight), Ledger: ledger.Empty()}, []*v1alpha1.Contract{contract("a", "a", 8)}, ""},
		"oversold":          {draft.World{Tenants: tenant(nil), Ledger: ledger.Empty()}, []*v1alpha1.Contract{contract("a", "a", 9)}, "would be oversold: 1 of gpu too much"},
		"oversold together": {draft.World{Tenants: tenant(nil), Ledger: ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: contract("b", "b", 5)}}})}, []*v1alpha1.Contract{contract("a", "a", 5)}, "would be oversold: 2 of gpu too much"},
		"over quota":        {draft.World{Tenants: tenant(&four), Ledger: ledger.Empty()}, []*v1alpha1.Contract{contract("a", "a", 5)}, "quota.gpu: 5 of 4"},
		"half a gang":       {draft.World{Tenants: tenant(nil), Ledger: ledger.Empty(), Intents: pair(nil)}, []*v1alpha1.Contract{contract("a", "a", 1)}, "only 1 of a gang of 2 would be placed"},
		"one of several":    {draft.World{Tenants: tenant(nil), Ledger: ledger.Empty(), Intents: pair(&no)}, []*v1alpha1.Contract{contract("a", "a", 1)}, ""},
		"a taken name":      {draft.World{Tenants: tenant(nil), Ledger: ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: contract("b", "a", 1)}}})}, []*v1alpha1.Contract{contract("a", "a", 1)}, "the name a is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world
			w.Offers = []*model.Offer{{Flavor: flavor}}
			w.Clusters = map[string]*v1alpha1.Cluster{}
			r := newRound(&w)
			r.Plan.Intents = []*draft.Decision{{Tenant: "vision", Name: "a", Action: draft.Place}}
			for _, made := range c.make {
				r.Plan.Contracts = append(r.Plan.Contracts, model.Change{After: made})
			}
			r.checkInvariants()
			d := r.Plan.Intents[0]
			if c.want == "" {
				if d.Action != draft.Place || len(r.Plan.Contracts) != 1 {
					t.Fatalf("%+v", d)
				}
				return
			}
			if d.Action != draft.Refuse || d.Code != lifecycle.CodeInvariant || !strings.Contains(d.Reason, c.want) || len(r.Plan.Contracts) != 0 {
				t.Fatalf("%+v", d)
			}
		})
	}
}
