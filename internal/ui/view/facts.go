package view

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Facts are a fleet's inputs, contracts and offers at one moment. They are not changed
// after New.
type Facts struct {
	Fleet  *fleet.Fleet
	Ledger *ledger.Ledger
	Books  ledger.Books
	Offers []*model.Offer
	Now    v1alpha1.Time

	pools map[[2]string][]ledger.Member // by provider and pool
}

// New joins them. The books count by the fleet's currency and timezone.
func New(f *fleet.Fleet, l *ledger.Ledger, b ledger.Books, offers []*model.Offer, now v1alpha1.Time) *Facts {
	out := &Facts{Fleet: f, Ledger: l, Books: b, Offers: offers, Now: now, pools: map[[2]string][]ledger.Member{}}
	for _, o := range offers {
		if fl := o.Flavor; fl.Spec.Pool != "" {
			key := [2]string{fl.Metadata.Namespace, fl.Spec.Pool}
			out.pools[key] = append(out.pools[key], l.MemberOf(fl))
		}
	}
	return out
}

// Hourly is what a contract costs now, in the fleet's currency where there is a rate,
// else in its own.
func (f *Facts) Hourly(c *v1alpha1.Contract) v1alpha1.Decimal {
	h := f.Books.HourlyAt(c.Spec.Price, f.Now)
	if d, err := f.Books.Convert(h, c.Spec.Price.Currency, f.Now); err == nil {
		return d
	}
	return h
}

// TenantHourly is what all of a tenant's charged contracts cost now.
func (f *Facts) TenantHourly(tenant string) v1alpha1.Decimal {
	sum := v1alpha1.Zero
	for c := range f.Ledger.Contracts() {
		if c.Metadata.Namespace == tenant && c.Status.Phase.Charged() {
			sum = sum.Add(f.Hourly(c))
		}
	}
	return sum
}

// Spent is what a tenant has spent this month.
func (f *Facts) Spent(tenant string) (v1alpha1.Decimal, error) {
	return f.Books.MonthSpend(f.Ledger, tenant, f.Now)
}

// Figures are a flavor's, with those of its pool.
func (f *Facts) Figures(fl *v1alpha1.Flavor) v1alpha1.OfferFigures {
	return ledger.Figures(f.Ledger.MemberOf(fl), f.pools[[2]string{fl.Metadata.Namespace, fl.Spec.Pool}], "")
}

// Free is what of a flavor may be sold.
func (f *Facts) Free(fl *v1alpha1.Flavor) v1alpha1.Resources {
	return ledger.Available(f.Figures(fl))
}

// poolOf are the other flavors of a flavor's pool.
func (f *Facts) poolOf(fl *v1alpha1.Flavor) (out []*v1alpha1.Flavor) {
	if fl.Spec.Pool == "" {
		return nil
	}
	for _, m := range f.pools[[2]string{fl.Metadata.Namespace, fl.Spec.Pool}] {
		if m.Flavor.Metadata.Name != fl.Metadata.Name {
			out = append(out, m.Flavor)
		}
	}
	return out
}

// Growth is how many cards of a flavor an autoscaler could still add, when so many are
// free of the present ones (fewer than none where some of the growth is sold already).
func Growth(fl *v1alpha1.Flavor, free v1alpha1.Amount) v1alpha1.Amount {
	more := ledger.Growth(ledger.Figures(ledger.Member{Flavor: fl}, nil, ""))[v1alpha1.GPU]
	if free.Less(v1alpha1.Amount{}) {
		more = more.Add(free)
	}
	return more.Max(v1alpha1.Amount{})
}

// Peering is a pair of clusters with what one gives the other.
type Peering struct {
	Consumer  string           `json:"consumer"`
	Provider  string           `json:"provider"`
	Contracts int              `json:"contracts"`
	Active    int              `json:"active"`
	GPUs      int64            `json:"gpus"`
	Hourly    v1alpha1.Decimal `json:"hourly"`
	Currency  string           `json:"currency"`
}

// Peerings are the pairs that held contracts need, by consumer and provider.
func (f *Facts) Peerings() []Peering {
	out := []Peering{}
	for _, consumer := range f.Ledger.Consumers() {
		by := map[string]*Peering{}
		for _, c := range f.Ledger.Consumer(consumer) {
			p := by[c.Spec.Provider]
			if p == nil {
				p = &Peering{Consumer: consumer, Provider: c.Spec.Provider, Currency: f.Fleet.Policy.Currency}
				by[c.Spec.Provider] = p
			}
			p.Contracts++
			if c.Status.Phase == v1alpha1.PhaseActive {
				p.Active++
			}
			if c.Spec.GPUs != nil {
				p.GPUs += c.Spec.GPUs.Count
			}
			if c.Status.Phase.Charged() {
				p.Hourly = p.Hourly.Add(f.Hourly(c))
			}
		}
		for _, name := range sortedNames(by) {
			out = append(out, *by[name])
		}
	}
	return out
}

// Spend is a tenant's money this month.
type Spend struct {
	Tenant   string           `json:"tenant"`
	Hourly   v1alpha1.Decimal `json:"hourly"`
	Spent    v1alpha1.Decimal `json:"spentThisMonth"`
	Forecast v1alpha1.Decimal `json:"forecastThisMonth"`
	Budget   string           `json:"monthlyBudget,omitempty"`
	Currency string           `json:"currency"`
}

// SpendOf is a tenant's money this month: what accrued, and with what its contracts will
// cost until the month or their term ends.
func (f *Facts) SpendOf(tenant string) Spend {
	s := Spend{Tenant: tenant, Hourly: f.TenantHourly(tenant), Currency: f.Fleet.Policy.Currency}
	s.Spent, _ = f.Spent(tenant)
	s.Forecast = s.Spent
	for c := range f.Ledger.Contracts() {
		if c.Metadata.Namespace == tenant {
			s.Forecast = s.Forecast.Add(f.ahead(c))
		}
	}
	if t := f.Fleet.Tenants[tenant]; t != nil && t.Spec.Budget != nil && t.Spec.Budget.Monthly != nil {
		s.Budget = t.Spec.Budget.Monthly.String() + " " + CurrencyOr(t.Spec.Budget.Currency, s.Currency)
	}
	return s
}

// ahead is what a contract will cost until the month or its term ends, in the fleet's
// currency; nothing where there is no rate.
func (f *Facts) ahead(c *v1alpha1.Contract) v1alpha1.Decimal {
	if !c.Status.Phase.Charged() {
		return v1alpha1.Zero
	}
	held, err := f.Books.Convert(f.Books.HoldMonthly(c, f.Now), c.Spec.Price.Currency, f.Now)
	if err != nil {
		return v1alpha1.Zero
	}
	return held
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
