package view

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// TenantRow is a tenant in a list.
type TenantRow struct {
	Name      string   `json:"name"`
	Consumers []string `json:"consumers,omitempty"`
	Intents   int      `json:"intents"`
	Queued    int      `json:"queued"`
	Contracts int      `json:"contracts"`
	// GPUs are cards, with their fractions, of so many by Quota.
	GPUs  string `json:"gpus"`
	Quota *int64 `json:"quota,omitempty"`
	// Money of this month, in the fleet's currency.
	Money TenantMoney `json:"money"`
}

// TenantMoney is what a tenant spends.
type TenantMoney struct {
	Hourly v1alpha1.Decimal `json:"hourly"`
	// Spent this month; absent where a rate of exchange is missing.
	Spent *v1alpha1.Decimal `json:"spent,omitempty"`
	// Forecast is Spent with what contracts will cost until the month or their term ends.
	Forecast *v1alpha1.Decimal `json:"forecast,omitempty"`
	// Budget of a month, in the fleet's currency; absent for none, or without a rate.
	Budget *v1alpha1.Decimal `json:"budget,omitempty"`
	// MaxHourly is the budget of an hour.
	MaxHourly *v1alpha1.Decimal `json:"maxHourly,omitempty"`
	Currency  string            `json:"currency"`
	// AtLimit is warn, stop or end; Warning says which limit is or will be exceeded.
	AtLimit string `json:"atLimit,omitempty"`
	Warning string `json:"warning,omitempty"`
}

func (m *Model) tenantRows() []TenantRow {
	hourly, ahead := map[string]v1alpha1.Decimal{}, map[string]v1alpha1.Decimal{}
	for i := range m.contracts {
		if c := &m.contracts[i]; c.Phase.Charged() {
			hourly[c.Tenant], ahead[c.Tenant] = hourly[c.Tenant].Add(c.Hourly), ahead[c.Tenant].Add(c.ahead)
		}
	}
	intents, queued := map[string]int{}, map[string]int{}
	for i := range m.intents {
		intents[m.intents[i].Tenant]++
		if m.intents[i].State == string(v1alpha1.IntentQueued) {
			queued[m.intents[i].Tenant]++
		}
	}
	out := make([]TenantRow, 0, len(m.Fleet.Tenants))
	for _, name := range sortedNames(m.Fleet.Tenants) {
		t := m.Fleet.Tenants[name]
		totals := m.Ledger.Totals(name)
		r := TenantRow{
			Name: name, Consumers: t.Spec.Consumers, Intents: intents[name], Queued: queued[name], Contracts: totals.Contracts, GPUs: Cards(totals),
			Money: TenantMoney{Hourly: hourly[name], Currency: m.Currency()},
		}
		if q := t.Spec.Quota; q != nil {
			r.Quota = q.GPU
		}
		if spent, err := m.Spent(name); err == nil {
			forecast := spent.Add(ahead[name])
			r.Money.Spent, r.Money.Forecast = &spent, &forecast
		}
		if b := t.Spec.Budget; b != nil {
			r.Money.AtLimit = CurrencyOr(b.AtLimit, "stop")
			r.Money.Budget, r.Money.MaxHourly = m.limit(b.Monthly, b.Currency), m.limit(b.Hourly, b.Currency)
		}
		out = append(out, r)
	}
	for _, b := range m.snap.Plan.Budgets {
		if at, ok := slices.BinarySearchFunc(out, b.Tenant, func(r TenantRow, name string) int { return strings.Compare(r.Name, name) }); ok {
			out[at].Money.Warning = b.Warning
		}
	}
	return out
}

// limit is a limit in the fleet's currency; nil for none, and without a rate.
func (m *Model) limit(d *v1alpha1.Decimal, currency string) *v1alpha1.Decimal {
	if d == nil {
		return nil
	}
	out, err := m.Books.Convert(*d, CurrencyOr(currency, m.Currency()), m.Now)
	if err != nil {
		return nil
	}
	return &out
}

// Tenants is a page of the tenants that are seen.
func (m *Model) Tenants(s Sight, q Query) List[TenantRow] {
	text := strings.ToLower(q.Text)
	return listOf(m.tenants, q, func(r *TenantRow) bool { return s.Of(r.Name) && has(text, r.Name) })
}

// TenantPage is everything about one tenant.
type TenantPage struct {
	TenantRow

	Spec  TenantRights      `json:"spec"`
	Wants List[IntentRow]   `json:"wants"`
	Holds List[ContractRow] `json:"held"`
	// ByModel are the cards that it holds.
	ByModel []Count `json:"byModel,omitempty"`
}

// TenantRights are what a tenant's file allows, without its keys and secrets.
type TenantRights struct {
	Namespaces  []string              `json:"namespaces,omitempty"`
	Providers   v1alpha1.ClusterLists `json:"providers,omitzero"`
	Quota       *v1alpha1.TenantQuota `json:"quota,omitempty"`
	MaxPriority *int32                `json:"maxPriority,omitempty"`
	Weight      int32                 `json:"weight,omitempty"`
	Members     []string              `json:"members,omitempty"`
}

// Tenant is a tenant's page; nil when there is none, or it is not seen.
func (m *Model) Tenant(s Sight, name string) *TenantPage {
	at := slices.IndexFunc(m.tenants, func(r TenantRow) bool { return r.Name == name })
	if at < 0 || !s.Of(name) {
		return nil
	}
	spec := m.Fleet.Tenants[name].Spec
	p := &TenantPage{
		TenantRow: m.tenants[at],
		Spec:      TenantRights{Namespaces: spec.Namespaces, Providers: spec.Providers, Quota: spec.Quota, MaxPriority: spec.MaxPriority, Weight: spec.Weight, Members: spec.Members},
		Wants:     m.Intents(s, Query{Tenant: name, Page: 1}), Holds: m.Contracts(s, Query{Tenant: name, Page: 1}),
	}
	by := map[string]int{}
	for _, c := range m.contracts {
		if c.Tenant == name && c.Phase.Charged() && c.GPUs > 0 {
			by[CurrencyOr(c.Model, "unknown model")] += int(c.GPUs)
		}
	}
	p.ByModel = Counts(by)
	return p
}
