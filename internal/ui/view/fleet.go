package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// FleetPage is the whole fleet on one page.
type FleetPage struct {
	Money Money `json:"money"`
	// Intents by state and Contracts by phase, the most frequent first.
	Intents   []Count `json:"intents"`
	Contracts []Count `json:"contracts"`
	Waiting   int     `json:"waiting"`
	// GPUs of all offers, then by model and region.
	GPUs     Share      `json:"gpus"`
	Capacity []Capacity `json:"capacity"`
	// Providers that give, of which Reporting are in reach.
	Providers int `json:"providers"`
	Reporting int `json:"reporting"`
	// Clusters that need a look first; at most a dozen.
	Clusters []ProviderRow `json:"clusters"`
	// Queue is its beginning, Look the contracts that need a look, Budgets the tenants
	// that have one; of tenants that are seen.
	Queue   []QueueRow    `json:"queue"`
	Look    []ContractRow `json:"look"`
	Budgets []TenantRow   `json:"budgets"`
	// Sources are tenants' own repositories, of tenants that are seen.
	Sources []SourceRow `json:"sources"`
}

// Money is what the fleet spends.
type Money struct {
	Hourly v1alpha1.Decimal `json:"hourly"`
	// Spent this month, and Forecast at its end with the contracts of now; of all
	// tenants, without those of which a rate of exchange is missing (NoRate).
	Spent    v1alpha1.Decimal `json:"spent"`
	Forecast v1alpha1.Decimal `json:"forecast"`
	NoRate   int              `json:"noRate,omitempty"`
	// Budget of the tenants that have a monthly one, so many of Tenants.
	Budget   *v1alpha1.Decimal `json:"budget,omitempty"`
	Budgets  int               `json:"budgets"`
	Tenants  int               `json:"tenants"`
	Month    string            `json:"month"`
	Currency string            `json:"currency"`
}

// Capacity is the GPUs of one model in one region.
type Capacity struct {
	Model   string `json:"model"`
	Profile string `json:"profile,omitempty"`
	Region  string `json:"region,omitempty"`
	Offers  int    `json:"offers"`

	Share

	// From is the lowest price of a GPU an hour among the offers that sell, in the fleet's
	// currency; absent where none is known.
	From *v1alpha1.Decimal `json:"from,omitempty"`
}

// few is how many rows of a list the fleet's page shows.
const few = 12

// FleetPage of who looks. Totals are of all tenants.
func (m *Model) FleetPage(s Sight) FleetPage {
	p := FleetPage{Money: m.money(), Queue: []QueueRow{}, Look: []ContractRow{}, Budgets: []TenantRow{}, Clusters: []ProviderRow{}, Waiting: len(m.queue)}
	states, phases := map[string]int{}, map[string]int{}
	for i := range m.intents {
		states[m.intents[i].State]++
	}
	for i := range m.contracts {
		c := &m.contracts[i]
		if !c.Held {
			continue
		}
		phases[string(c.Phase)]++
		if NeedsLook(c.Phase, c.Reason) && s.Of(c.Tenant) && len(p.Look) < few {
			p.Look = append(p.Look, *c)
		}
	}
	p.Sources = m.sourcesOf(s)
	p.Intents, p.Contracts = Counts(states), Counts(phases)
	p.Capacity = m.capacity()
	for i := range p.Capacity {
		p.GPUs.add(&p.Capacity[i].Share)
	}
	for i := range m.providers {
		r := m.providers[i]
		if slices.Contains(r.Roles, v1alpha1.RoleProvider) {
			p.Providers++
			if r.State != "Lost" && r.State != "Silent" && r.State != stateUnreported && r.State != "Elsewhere" {
				p.Reporting++
			}
		}
		if !s.All() {
			r.Conditions = nil
		}
		if len(p.Clusters) < few {
			p.Clusters = append(p.Clusters, r)
		}
	}
	p.Queue = m.Queue(s, Query{Size: few}).Items
	for i := range m.tenants {
		if t := &m.tenants[i]; s.Of(t.Name) && (t.Money.Budget != nil || !t.Money.Hourly.IsZero()) {
			p.Budgets = append(p.Budgets, *t)
		}
	}
	slices.SortStableFunc(p.Budgets, func(a, b TenantRow) int { return b.Money.Hourly.Cmp(a.Money.Hourly) })
	p.Budgets = p.Budgets[:min(len(p.Budgets), few)]
	return p
}

func (m *Model) money() Money {
	out := Money{Tenants: len(m.tenants), Month: m.Books.Month(m.Now), Currency: m.Currency()}
	for i := range m.tenants {
		t := &m.tenants[i].Money
		if t.Spent == nil {
			out.NoRate++
		} else {
			out.Spent, out.Forecast = out.Spent.Add(*t.Spent), out.Forecast.Add(*t.Forecast)
		}
		if t.Budget != nil {
			sum := *t.Budget
			if out.Budget != nil {
				sum = sum.Add(*out.Budget)
			}
			out.Budget = &sum
			out.Budgets++
		}
	}
	for i := range m.contracts {
		if c := &m.contracts[i]; c.Phase.Charged() && c.Currency == out.Currency {
			out.Hourly = out.Hourly.Add(c.Hourly)
		}
	}
	return out
}

// capacity is the GPUs by model and region, what is free most first.
func (m *Model) capacity() []Capacity {
	by := map[[3]string]*Capacity{}
	for i := range m.flavors {
		f := &m.flavors[i]
		if f.GPUs == nil {
			continue
		}
		key := [3]string{f.Model, f.Profile, f.Location.Region}
		c := by[key]
		if c == nil {
			c = &Capacity{Model: f.Model, Profile: f.Profile, Region: f.Location.Region}
			by[key] = c
		}
		c.Offers++
		c.Share.add(f.GPUs)
		if f.Price == nil || f.Flat || !f.GPUs.Sellable {
			continue
		}
		if price, err := m.Books.Convert(*f.Price, f.PriceCurrency, m.Now); err == nil && (c.From == nil || price.Cmp(*c.From) < 0) {
			c.From = &price
		}
	}
	out := make([]Capacity, 0, len(by))
	for _, c := range by {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Capacity) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), strings.Compare(a.Profile, b.Profile), strings.Compare(a.Region, b.Region))
	})
	return out
}
