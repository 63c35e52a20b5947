package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// HourlyOf is what a contract costs an hour, in the fleet's currency.
func (r *Draft) HourlyOf(c *v1alpha1.Contract) v1alpha1.Decimal {
	return r.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency).Decimal()
}

// OpenAccounts makes the accounts of the round's tenants, from its world and its
// ledger's index.
func (r *Draft) OpenAccounts() {
	r.Accounts = account.New(account.Source{
		Tenants: r.W.Tenants, Ledger: r.W.Ledger, Standing: r.Charged, Limits: r.Limits, Money: r.money(),
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
func (r *Draft) money() account.Money { return account.Money{Books: r.Books, Now: r.Now} }

// InFleet is an amount of a currency in the fleet's.
func (r *Draft) InFleet(d v1alpha1.Decimal, currency string) quantity.Micro {
	m := r.money()
	return m.In(d, currency)
}

// Peak is the most a charged contract costs an hour.
func (r *Draft) Peak(c *v1alpha1.Contract) quantity.Micro {
	m := r.money()
	return m.Peak(c)
}

// Entry is a version of a contract as its tenant's account takes it.
func (r *Draft) Entry(c *v1alpha1.Contract) account.Entry {
	return account.Entry{Contract: c, Leaving: r.leaves(c)}
}
