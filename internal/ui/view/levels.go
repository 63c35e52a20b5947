package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxSeries bounds how many series one figure has: reasons and models of GPUs are words
// of files and agents. What is beyond counts as Other.
const maxSeries = 64

// Other is what series beyond the bound are counted as.
const Other = "other"

// Levels are figures of the whole fleet, for metrics: each has a bounded number of series.
type Levels struct {
	// Intents by state and code of the reason, "" where there is none.
	Intents map[[2]string]int
	// Providers by state, as on their page.
	Providers map[string]int
	// Unreported is for how long those that are Silent or Lost have sent no report, by name and
	// state; beyond maxSeries of them the longest of the others, as Other.
	Unreported map[[2]string]time.Duration
	// GPUs of all offers by model.
	GPUs map[string]Share
	// Idle are GPUs of contracts that are Active and have no pod, as far as agents report
	// pods; Oversold those that are used and held beyond what offers have, and Headroom those
	// that may still be sold beyond it. By model, those of GPUs alone.
	Idle, Oversold, Headroom map[string]int64
	// Oldest is how long the intent has waited that has waited longest.
	Oldest time.Duration
	// Hourly is what all contracts cost, in Currency.
	Hourly   v1alpha1.Decimal
	Currency string
	// Breaches are contracts that break their intent's sla at present, by kind.
	Breaches map[string]int
	// Budgets are the tenants that have a monthly one, with the money that their pages show.
	Budgets []TenantRow
	// Deaf: too few providers report to decide.
	Deaf bool
}

// unreported notes a provider that should report, and does not.
func (l *Levels) unreported(p *ProviderRow, now v1alpha1.Time) {
	if p.State != "Silent" && p.State != "Lost" {
		return
	}
	key := [2]string{p.Name, p.State}
	if len(l.Unreported) >= maxSeries {
		key[0] = Other
	}
	silent := time.Duration(0)
	if !p.Reported.IsZero() { // else this daemon knows of no report
		silent = max(now.Sub(p.Reported.Time), 0)
	}
	l.Unreported[key] = max(l.Unreported[key], silent)
}

// Levels of the model.
func (m *Model) Levels() Levels {
	l := Levels{
		Intents: map[[2]string]int{}, Providers: map[string]int{}, Unreported: map[[2]string]time.Duration{}, GPUs: map[string]Share{},
		Breaches: m.breaches(), Hourly: m.money().Hourly, Currency: m.Currency(), Deaf: m.snap.World.Deaf,
	}
	for i := range m.intents {
		r := &m.intents[i]
		key := [2]string{r.State, r.Reason}
		if _, known := l.Intents[key]; !known && len(l.Intents) >= maxSeries {
			key[1] = Other
		}
		l.Intents[key]++
	}
	for i := range m.providers {
		if p := &m.providers[i]; slices.Contains(p.Roles, v1alpha1.RoleProvider) {
			l.Providers[p.State]++
			l.unreported(p, m.Now)
		}
	}
	for i := range m.tenants {
		if t := &m.tenants[i]; t.Money.Budget != nil {
			l.Budgets = append(l.Budgets, *t)
		}
	}
	for i := range m.queue {
		if at := m.queue[i].Waits; !at.IsZero() {
			l.Oldest = max(l.Oldest, m.Now.Sub(at.Time))
		}
	}
	capacity := m.capacity()
	slices.SortStableFunc(capacity, func(a, b Capacity) int { return cmp.Compare(b.Capacity, a.Capacity) })
	for i := range capacity {
		c := &capacity[i]
		model := c.Model
		if _, known := l.GPUs[model]; !known && len(l.GPUs) >= maxSeries {
			model = Other
		}
		sum := l.GPUs[model]
		sum.add(&c.Share)
		l.GPUs[model] = sum
	}
	l.Idle, l.Oversold, l.Headroom = map[string]int64{}, map[string]int64{}, map[string]int64{}
	counted := func(model string) string {
		if _, known := l.GPUs[model]; !known {
			return Other
		}
		return model
	}
	for model := range l.GPUs {
		l.Idle[model], l.Oversold[model], l.Headroom[model] = 0, 0, 0
	}
	for model, n := range m.idleGPUs() {
		l.Idle[counted(model)] += n
	}
	for i := range m.flavors {
		if f := &m.flavors[i]; f.GPUs != nil {
			model := counted(f.Model)
			l.Oversold[model] += f.Oversold
			l.Headroom[model] += f.Headroom
		}
	}
	return l
}
