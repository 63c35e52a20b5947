package account

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// What a budget does at its limit.
const (
	AtLimitStop = "stop" // what "" means too
	AtLimitWarn = "warn"
	AtLimitEnd  = "end"
)

// Tenant is a team's account during a round: its limits, and what its charged
// contracts come to with what the round has decided so far.
type Tenant struct {
	Name string
	// Known: the fleet has it. Spec is empty where not.
	Known bool
	Spec  *v1alpha1.TenantSpec

	totals ledger.Totals
	// leaving is what it gave up and is not seen gone: its quota counts that too.
	leaving ledger.Totals
	// kept is what claims keep: it counts against limits alone.
	kept kept
	// hourly is the highest price of all charged contracts; month is
	// what the calendar month has cost, and will if they all run on; spent of that
	// is gone already.
	hourly, month, spent quantity.Total
	// later is what the round has charged of months to come (Spend), charged what the ledger
	// says of them, made on first use.
	later, charged map[string]quantity.Micro
	// Budget limits, unlimited where there are none.
	maxHourly, maxMonthly quantity.Micro
	atLimit               string
	// changes counts what was booked.
	changes int
	// share of the fleet and of what, as of shareAt − 1 changes.
	share     int64
	shareName string
	shareAt   int
	// cards held, in thousandths, as of cardsAt − 1 changes.
	cards   int64
	cardsAt int
	// kinds remembers, by model of the quota, which kinds of card are of it.
	kinds map[string]map[int]bool
}

// Version differs after each change of the account.
func (t *Tenant) Version() int { return t.changes }

// Contracts is how many contracts the quota counts.
func (t *Tenant) Contracts() int { return t.totals.Contracts + t.leaving.Contracts }

// counted is what the quota counts.
func (t *Tenant) counted() ledger.Totals {
	if t.leaving.Contracts == 0 {
		return t.totals
	}
	return t.totals.With(t.leaving)
}

// taken is what the quota counts, with what is kept for claims.
func (t *Tenant) taken() ledger.Totals {
	if t.kept.totals.Contracts == 0 {
		return t.counted()
	}
	return t.counted().With(t.kept.totals)
}

// Most is how many contracts a tenant may hold, and which line of which file
// states that.
func (a *Accounts) Most(t *Tenant) (most int64, field string) {
	return MostContracts(a.Limits, t.Spec, t.Name)
}

// MostContracts is Most of a tenant by its file and the fleet's.
func MostContracts(limits v1alpha1.Limits, spec *v1alpha1.TenantSpec, name string) (most int64, field string) {
	most, field = limits.Contracts, "spec.limits.contracts in fleet.yaml"
	if q := spec.Quota; q != nil && q.Contracts != nil && *q.Contracts < most {
		most, field = *q.Contracts, "quota.contracts in tenants/"+name+".yaml"
	}
	return most, field
}

// Budget is a tenant's money as of now; limits that there are not are
// quantity.Unlimited. Without a budget nothing is summed.
type Budget struct {
	// Hourly is the highest price of all charged contracts.
	Hourly, MaxHourly quantity.Micro
	// Spent is what the calendar month has cost, Month with what it will cost if
	// all contracts run on.
	Spent, Month, MaxMonthly quantity.Micro
	// AtLimit is one of the constants above.
	AtLimit string
}

// Budget is the tenant's.
func (t *Tenant) Budget() Budget {
	b := Budget{Hourly: t.hourly.Micro(), MaxHourly: t.maxHourly, Spent: t.spent.Micro(), Month: t.month.Micro(), MaxMonthly: t.maxMonthly, AtLimit: t.atLimit}
	if b.AtLimit == "" {
		b.AtLimit = AtLimitStop
	}
	return b
}

// LimitedMonthly reports whether the money of a month is limited.
func (t *Tenant) LimitedMonthly() bool { return t.maxMonthly < quantity.Unlimited }

// Size is what a contract takes of a quota.
type Size struct {
	// Units of cards, PerCard of which are one card; CPU in thousandths of a core,
	// Memory in bytes.
	Units, PerCard, CPU, Memory int64
}

// milliCards is the cards of a size in thousandths, rounded up.
func (s *Size) milliCards() int64 {
	if s.PerCard > 1 {
		return (s.Units*1000 + s.PerCard - 1) / s.PerCard
	}
	return s.Units * 1000
}
