package view

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/howto"
)

// HowTo is how a team uses what an intent holds; kind is one of howto.Kinds.
func (f *Facts) HowTo(tenant, name, kind string) *howto.Guide {
	in := howto.Input{
		Tenant: tenant, Name: name, Kind: kind, State: f.Ledger.State(tenant, name), Contracts: f.Ledger.ByIntent(tenant, name),
		Hourly: v1alpha1.Zero, Currency: f.Fleet.Policy.Currency,
	}
	for _, c := range in.Contracts {
		if c.Status.Phase.Charged() {
			in.Hourly = in.Hourly.Add(f.Hourly(c))
		}
	}
	if it := f.Fleet.Intent(tenant, name); it != nil {
		in.Spec, in.Consumer = &it.Spec, it.Spec.Consumer
		if t := f.Fleet.Tenants[tenant]; t != nil {
			in.Consumer = t.Spec.ConsumerOf(&it.Spec)
		}
	}
	return howto.Of(in)
}
