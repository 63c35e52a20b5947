package draft

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
)

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

// Entry is a version of a contract as its tenant's account takes it.
func (r *Draft) Entry(c *v1alpha1.Contract) account.Entry {
	return account.Entry{Contract: c, Leaving: r.leaves(c)}
}

// Booked writes down a change of accounts.
func (r *Draft) Booked(ch account.Change) {
	r.moved()
	if d := &r.journal; len(d.marks) > 0 {
		d.kinds, d.charges = append(d.kinds, kindCharge), append(d.charges, ch)
	}
}

// OffAccount takes a contract that is about to be replaced off its tenant's
// account; its capacity stays held. OnAccount puts it back.
func (r *Draft) OffAccount(c *v1alpha1.Contract) {
	r.Booked(r.Accounts.Charge(account.Entry{Contract: c}, account.Entry{}, r.Now))
	if OnAxis(r).AnyBookings() {
		SetKey(r, OnAxis(r).aheads().offAccount, c.Metadata.Name, true)
	}
}

// OnAccount puts a contract that OffAccount took back on its tenant's account.
func (r *Draft) OnAccount(c *v1alpha1.Contract) {
	r.Booked(r.Accounts.Charge(account.Entry{}, account.Entry{Contract: c}, r.Now))
	if r.ahead != nil && r.ahead.offAccount[c.Metadata.Name] {
		Delete(r, r.ahead.offAccount, c.Metadata.Name)
	}
}

// charge puts what a booking cost that was cancelled too late on its tenant's account.
func (r Axis) charge(c *v1alpha1.Contract) {
	r.Booked(r.Accounts.Spend(c.Metadata.Namespace, c.Status.Months, c.Spec.Price.Currency))
}

// chargedText is why cancelling a booking costs its term.
func chargedText(b *v1alpha1.Bookings) string {
	return "; its term is charged (bookings.freeUntil " + b.FreeUntil.String() + ")"
}

// CountReplaced charges to their tenants' quotas what contracts of this round have replaced,
// as the next round will, and reports whether there was any that counts: all changes have
// been made, and those that still wait are to be told why by what there will be.
func CountReplaced(r *Draft) (any bool) {
	if !r.By(RulesAgain) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(r.replaced)) {
		c := r.Current[name]
		if Delete(r, r.replaced, name); r.leaves(c) {
			r.Booked(r.Accounts.Charge(account.Entry{}, r.Entry(c), r.Now))
			any = true
		}
	}
	return any
}
