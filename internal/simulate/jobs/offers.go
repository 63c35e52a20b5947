package jobs

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// offered are the flavors that could be sold if no contract held anything: what their
// providers use themselves is taken off, cordoned and lost ones are left out. Prices are
// those that hold for them, times what a change says.
func offered(in *scenario.Input, c *scenario.Change) (flavors []*v1alpha1.Flavor, clusters []*v1alpha1.Cluster) {
	seen := map[string]bool{}
	for _, o := range in.Offers {
		provider := o.Flavor.Metadata.Namespace
		cluster := in.Clusters[provider]
		if cluster == nil || cluster.Spec.Cordon || o.Flavor.Spec.Cordon || o.State != model.Fresh && o.State != model.Silent || slices.Contains(c.Without, provider) {
			continue
		}
		f := *o.Flavor
		s := &f.Spec
		s.Capacity = v1alpha1.Resources{}
		for name, amount := range o.Flavor.Spec.Capacity {
			s.Capacity[name] = amount.Sub(o.Flavor.Spec.Used[name]).Max(v1alpha1.Amount{})
		}
		s.Used, s.Held, s.Refused, s.Usage, s.ScalableTo, s.Overcommit, s.Drain = nil, nil, nil, nil, nil, v1alpha1.Overcommit{}, v1alpha1.Time{}
		s.Location, s.Price = o.Location, o.Price
		for _, p := range c.Prices {
			if p.Of == "" || p.Of == provider {
				s.Price = priced(s.Price, scenario.Times(p.Times))
			}
		}
		flavors = append(flavors, &f)
		if !seen[provider] {
			seen[provider] = true
			clusters = append(clusters, cluster)
		}
	}
	return flavors, clusters
}

// priced is a price of which every amount is multiplied.
func priced(p *v1alpha1.Price, times v1alpha1.Decimal) *v1alpha1.Price {
	if p == nil {
		return nil
	}
	multiply := func(u v1alpha1.UnitPrices) v1alpha1.UnitPrices {
		if u == nil {
			return nil
		}
		out := v1alpha1.UnitPrices{}
		for name, d := range u {
			out[name] = d.Mul(times)
		}
		return out
	}
	out := *p
	out.PerHour, out.Spot = multiply(p.PerHour), multiply(p.Spot)
	if p.Flat != nil {
		flat := p.Flat.Mul(times)
		out.Flat = &flat
	}
	if p.Reserved != nil {
		r := *p.Reserved
		r.UnitPrices = multiply(r.UnitPrices)
		out.Reserved = &r
	}
	out.Windows = slices.Clone(p.Windows)
	for i := range out.Windows {
		out.Windows[i].PerHour = multiply(p.Windows[i].PerHour)
	}
	return &out
}
