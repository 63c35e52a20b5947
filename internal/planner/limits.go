package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// openAccounts makes the accounts of the round's tenants, from its world and its
// ledger's index.
func (r *round) openAccounts() {
	r.accounts = account.New(account.Source{
		Tenants: r.w.Tenants, Ledger: r.w.Ledger, Standing: r.charged, Limits: r.limits, Money: r.money(),
		Leaving: func(tenant string) (leaving []*v1alpha1.Contract) {
			for _, c := range r.givenUp[tenant] {
				if r.leaves(c) {
					leaving = append(leaving, c)
				}
			}
			return leaving
		},
	})
}

// money counts as of now.
func (r *round) money() account.Money { return account.Money{Books: r.books, Now: r.now} }

// inFleet is an amount of a currency in the fleet's.
func (r *round) inFleet(d v1alpha1.Decimal, currency string) quantity.Micro {
	m := r.money()
	return m.In(d, currency)
}

// peak is the most a charged contract costs an hour.
func (r *round) peak(c *v1alpha1.Contract) quantity.Micro {
	m := r.money()
	return m.Peak(c)
}

// entry is a version of a contract as its tenant's account takes it.
func (r *round) entry(c *v1alpha1.Contract) account.Entry {
	return account.Entry{Contract: c, Leaving: r.leaves(c)}
}

// Limits of the tenant, for what is left of them after this round's earlier
// decisions: the last requirements that are checked.
const (
	ReqQuotaGPU      = account.QuotaGPU
	ReqQuotaCPU      = account.QuotaCPU
	ReqQuotaMemory   = account.QuotaMemory
	ReqQuotaCount    = account.QuotaCount
	ReqQuotaByModel  = account.QuotaByModel
	ReqTenantHourly  = account.BudgetHourly
	ReqTenantMonthly = account.BudgetMonthly
)

// tier is match.Tier: what a tenant has left is more when time has passed.
func tier(req string) int {
	switch req {
	case ReqQuotaGPU, ReqQuotaCPU, ReqQuotaMemory, ReqQuotaCount, ReqQuotaByModel, ReqTenantHourly, ReqTenantMonthly:
		return 1
	}
	return match.Tier(req)
}

// limits are what a placement may still take: of the tenant's quota and budget
// and of the intent's own.
type limits struct {
	account.Limits
	// The intent's own, what its other replicas need at the least left out.
	own match.SpendLimits
	// only is the offer that alone may be taken, nil for any; those of avoid may
	// not.
	only  *inventory.Offer
	avoid map[inventory.Key]bool
	// life is for how many seconds an intent's total must last.
	life int64
	// rules on where the replica may stand, nil for none.
	rules *rules
	// bars on providers for what the intent names there, nil for none.
	bars *bars
}

// same reports whether two limits of one tenant, which has not changed in
// between, are equal: only what an intent brings along can differ.
func (l *limits) same(o *limits) bool {
	return l.Same(&o.Limits) && l.own == o.own && l.life == o.life &&
		l.only == o.only && l.avoid == nil && o.avoid == nil && l.rules == nil && o.rules == nil && l.bars == nil && o.bars == nil
}

// limitsOf is what one more contract of a tenant may take.
func (r *round) limitsOf(t *account.Tenant, q request, seconds int64) *limits {
	return &limits{
		Limits: r.accounts.LimitsOf(t, seconds, r.now, q.mayBorrow), life: seconds,
		own: match.NoSpendLimits(),
	}
}

// below reports whether limits rule out everything that takes no less than f:
// what breaks would say of each candidate, in one step. It must never rule out
// what breaks allows.
func (l *limits) below(f *match.Floor) bool {
	return l.Below(f.MilliCards, f.CPU, f.Memory, f.Peak) ||
		f.Peak > max(l.own.Hourly, l.own.HourlySpot) ||
		l.own.Total < quantity.Unlimited && f.Peak.ForSeconds(max(l.life, 60)) > l.own.Total
}

// breaks is the limit that placing a candidate would break, "" for none.
func (l *limits) breaks(c *match.Candidate) string {
	if l.only != nil && l.only != c.Offer {
		return reqOther
	}
	if l.avoid != nil && (l.avoid[inventory.Key{Provider: c.Offer.Provider, Name: c.Offer.Name}] || l.avoid[inventory.Key{Provider: c.Offer.Provider}]) {
		return match.ReqDenied
	}
	if req := l.bars.breaks(c.Offer.Provider); req != "" {
		return req
	}
	if req := l.rules.breaks(c.Offer); req != "" {
		return req
	}
	q := &c.Quote
	size, cards := sizeOn(c.Offer, c.Size), account.Cards{GPU: c.Offer.Flavor.Spec.GPU, Kind: c.Offer.CardKind}
	if req := l.Breaks(&size, &cards, q.Peak); req != "" {
		return req
	}
	switch {
	case q.Class == v1alpha1.Spot && l.own.HourlySpot != l.own.Hourly && q.Most() > l.own.HourlySpot:
		return match.ReqMaxHourlySpot
	case (q.Class != v1alpha1.Spot || l.own.HourlySpot == l.own.Hourly) && q.Most() > l.own.Hourly:
		return match.ReqMaxHourly
	case l.own.Total < quantity.Unlimited && q.Most().ForSeconds(max(l.life, 60)) > l.own.Total:
		return match.ReqMaxTotal
	}
	return ""
}

// sizeOn is a size on an offer as a quota counts it.
func sizeOn(o *inventory.Offer, size quantity.Vector) account.Size {
	return account.Size{Units: size.At(quantity.GPU), PerCard: o.UnitsPerCard, CPU: size.At(quantity.CPU), Memory: size.At(quantity.Memory)}
}
