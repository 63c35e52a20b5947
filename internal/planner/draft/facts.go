package draft

import (
	"cmp"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Facts are what a round is given. Nothing changes them.
type Facts struct {
	// W is the world, with what warm pools add to it.
	W     *World
	Fleet *v1alpha1.FleetSpec
	// Limits are the fleet's, filled.
	Limits v1alpha1.Limits
	Books  ledger.Books
	Frozen freezes
}

// Moment is the facts and the instant as of which it is decided: the world's, until a
// replay of the future moves on (Draft.MoveTo).
type Moment struct {
	Facts
	Now v1alpha1.Time
}

// By reports whether a round decides by the rules of a number.
func (f *Facts) By(rules int) bool { return f.W.Rules == 0 || f.W.Rules >= rules }

// RulesRecorded is the number of the rules that decisions record: 0 for those of before it
// was recorded.
func (f *Facts) RulesRecorded() int {
	switch {
	case f.W.Rules == 0:
		return Rules
	case f.W.Rules < RulesAsked:
		return 0
	}
	return f.W.Rules
}

// Replaying reports whether the future is replayed: then it is not decided as of the
// world's instant.
func (f *Moment) Replaying() bool { return f.Now != f.W.Now }

// HeldOf are the contracts of an intent that keep capacity.
func (f *Facts) HeldOf(k [2]string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	for _, c := range f.W.Ledger.ByIntent(k[0], k[1]) {
		if c.Status.Phase.Held() {
			out = append(out, c)
		}
	}
	return out
}

// KeptOf are the contracts of an intent that keep capacity, now or in a term to come.
func (f *Facts) KeptOf(k [2]string) []*v1alpha1.Contract {
	out := f.HeldOf(k)
	for _, c := range f.W.Ledger.ByIntent(k[0], k[1]) {
		if c.Status.Phase == v1alpha1.PhaseBooked {
			out = append(out, c)
		}
	}
	return out
}

// money is the fleet's currency and rates as of now.
func (f *Moment) money() account.Money { return account.Money{Books: f.Books, Now: f.Now} }

// InFleet is an amount of a currency in the fleet's.
func (f *Moment) InFleet(d v1alpha1.Decimal, currency string) quantity.Micro {
	m := f.money()
	return m.In(d, currency)
}

// HourlyOf is what a contract costs an hour, in the fleet's currency.
func (f *Moment) HourlyOf(c *v1alpha1.Contract) v1alpha1.Decimal {
	return f.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency).Decimal()
}

// Peak is the most a charged contract costs an hour.
func (f *Moment) Peak(c *v1alpha1.Contract) quantity.Micro {
	m := f.money()
	return m.Peak(c)
}

// ToEnd is what a contract will cost from now to the end of its term.
func (f *Moment) ToEnd(c *v1alpha1.Contract) quantity.Micro {
	m := f.money()
	return m.ToEnd(c, !f.By(RulesFarPrices))
}

// defaultGrace is FORMATS' default of a fleet's gracePeriod.
const defaultGrace = 5 * time.Minute

// defaultHold is FORMATS' default of a fleet's consolidation.hold.
const defaultHold = 30 * time.Minute

// Hold is how long an offer must be better before what works is moved there.
func (f *Facts) Hold() time.Duration { return cmp.Or(f.Fleet.Consolidation.Hold.Duration, defaultHold) }

// Grace is how long trouble lasts before the fleet acts.
func (f *Facts) Grace() time.Duration {
	if d := f.Fleet.Defaults.GracePeriod.Duration; d > 0 {
		return d
	}
	return defaultGrace
}
