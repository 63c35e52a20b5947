package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// reqOther is what all offers but the one that is tried fail; no plan shows it.
const reqOther = "other"

// Limits are what a placement may still take: of the tenant's quota and budget
// and of the intent's own.
type Limits struct {
	account.Limits
	// The intent's own, what its other replicas need at the least left out.
	own match.SpendLimits
	// Only is the offer that alone may be taken, nil for any; those of avoid may
	// not.
	Only  *inventory.Offer
	avoid map[inventory.Key]bool
	// life is for how many seconds an intent's total must last.
	life int64
	// Rules on where the replica may be placed, nil for none.
	Rules *Rules
	// bars on providers for what the intent names there, nil for none.
	bars *rules.Bars
	// booked keeps it from what others have booked, nil where nothing is.
	booked *untilBooked
}

// same reports whether two limits of one tenant, which has not changed in
// between, are equal: only what an intent brings along can differ.
func (l *Limits) same(o *Limits) bool {
	return l.Same(&o.Limits) && l.own == o.own && l.life == o.life &&
		l.Only == o.Only && l.avoid == nil && o.avoid == nil && l.Rules == nil && o.Rules == nil && l.bars == nil && o.bars == nil && l.booked == nil && o.booked == nil
}

// LimitsOf is what one more contract of a tenant may take.
func (r *Placer) LimitsOf(t *account.Tenant, q Request, seconds int64) *Limits {
	return &Limits{
		Limits: r.Accounts.LimitsOf(t, seconds, r.Now, q.MayBorrow), life: seconds,
		own: match.NoSpendLimits(),
	}
}

// below reports whether limits rule out everything that takes no less than f:
// what Rejects would answer for each candidate, in one step. It must never rule out
// what Rejects allows.
func (l *Limits) below(f *match.Floor) bool {
	return l.Below(f.MilliCards, f.CPU, f.Memory, f.Peak) ||
		f.Peak > max(l.own.Hourly, l.own.HourlySpot) ||
		l.own.Total < quantity.Unlimited && f.Peak.ForSeconds(max(l.life, 60)) > l.own.Total
}

// Rejects is the limit that placing a candidate would break, "" for none.
func (l *Limits) Rejects(c *match.Candidate) string {
	if l.Only != nil && l.Only != c.Offer {
		return reqOther
	}
	if l.avoid != nil && (l.avoid[inventory.Key{Provider: c.Offer.Provider, Name: c.Offer.Name}] || l.avoid[inventory.Key{Provider: c.Offer.Provider}]) {
		return match.ReqDenied
	}
	if req := l.bars.Breaks(c.Offer.Provider); req != "" {
		return req
	}
	if req := l.Rules.Breaks(c.Offer); req != "" {
		return req
	}
	if req := l.Rules.Lacks(c.Offer, c.Size); req != "" {
		return req
	}
	if l.booked.Breaks(c) {
		return match.ReqBooked
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
