package planner

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// withWarmPools is the world with the tenant of its warm pools, and an intent
// for each of them. w is not modified.
func withWarmPools(w *draft.World) (*draft.World, []*model.Intent) {
	if w.Fleet == nil || len(w.Fleet.WarmPools) == 0 || w.Tenants[v1alpha1.FleetTenant] != nil {
		return w, nil
	}
	out := *w
	var pools []*model.Intent
	tenant := &v1alpha1.Tenant{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTenant},
		Metadata: v1alpha1.Metadata{Name: v1alpha1.FleetTenant},
	}
	seen := map[string]bool{}
	for i := range w.Fleet.WarmPools {
		p := &w.Fleet.WarmPools[i]
		if seen[p.Name] {
			continue // validation refuses it; the first holds
		}
		seen[p.Name] = true
		if !slices.Contains(tenant.Spec.Consumers, p.Consumer) {
			tenant.Spec.Consumers = append(tenant.Spec.Consumers, p.Consumer)
		}
		pools = append(pools, warmIntent(w, p))
	}
	out.Tenants = maps.Clone(w.Tenants)
	if out.Tenants == nil {
		out.Tenants = map[string]*v1alpha1.Tenant{}
	}
	out.Tenants[v1alpha1.FleetTenant] = tenant
	return &out, pools
}

// warmIntent is a pool as an intent: as many slices as it asks for, each on its
// own, of which having none yet is no failure.
func warmIntent(w *draft.World, p *v1alpha1.WarmPool) *model.Intent {
	alone := false
	doc := &v1alpha1.ResourceIntent{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindResourceIntent},
		Metadata: v1alpha1.Metadata{Name: p.Name, Namespace: v1alpha1.FleetTenant},
		Spec: v1alpha1.IntentSpec{
			Consumer: p.Consumer, Resources: p.Resources, Gang: &alone,
			Replicas: v1alpha1.Replicas{Min: p.Count, Max: p.Count},
		},
	}
	return &model.Intent{
		ResourceIntent: doc, Path: settle.WarmPath, Digest: settle.WarmDigest(p), Commit: w.Inputs, Author: w.Fleet.WriteBack.Author.String(),
	}
}
