// Package intern makes the strings that thousands of intents share one: the tenant,
// clusters, regions, units.
//
// Package fleet calls it once for each intent that it reads, before anybody else has it.
// Safe for concurrent use.
package intern

import (
	"unique"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Intent makes an intent's strings shared ones.
func Intent(in *v1alpha1.ResourceIntent) {
	in.TypeMeta = v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindResourceIntent}
	in.Metadata.Namespace = one(in.Metadata.Namespace)
	in.Metadata.Labels = oneMap(in.Metadata.Labels)
	s := &in.Spec
	s.Consumer = one(s.Consumer)
	s.Placement.Where = one(s.Placement.Where)
	for _, list := range [][]string{s.Placement.Providers.Allow, s.Placement.Providers.Deny, s.Placement.Regions, s.Placement.Zones, s.Placement.Architectures} {
		for i := range list {
			list[i] = one(list[i])
		}
	}
	s.Resources.Named = oneResources(s.Resources.Named)
	if g := s.Resources.GPU; g != nil {
		g.Vendor = one(g.Vendor)
		for i := range g.Models {
			g.Models[i] = one(g.Models[i])
		}
	}
}

func one(s string) string {
	if s == "" {
		return ""
	}
	return unique.Make(s).Value()
}

func oneMap(m map[string]string) map[string]string {
	for k, v := range m {
		delete(m, k)
		m[one(k)] = one(v)
	}
	return m
}

func oneResources(r v1alpha1.Resources) v1alpha1.Resources {
	if len(r) == 0 {
		return r
	}
	out := make(v1alpha1.Resources, len(r))
	for name, a := range r {
		out[one(name)] = a
	}
	return out
}
