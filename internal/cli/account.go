package cli

import (
	"context"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

// accountInterval is how often the spend metrics are made anew: adding up a
// large ledger costs some tens of milliseconds.
const accountInterval = 30 * time.Second

// accounts keeps the metrics of money in step with the ledger and the clock, until the
// context ends.
func (d *daemon) accounts(ctx context.Context) error {
	tick := time.NewTicker(accountInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			d.account(now)
		}
	}
}

// account sets the metrics of spend and savings to what the ledger says now:
// they are the ledger's sums, so a restart does not begin at 0 again.
func (d *daemon) account(now time.Time) {
	v := d.loop.View()
	if v.Contracts == nil || v.Fleet == nil {
		return
	}
	books, err := ledger.BooksOf(v.Fleet.Policy)
	if err != nil {
		d.log.Warn("spend cannot be added up", "error", err)
		return
	}
	spend, savings := sums(v.Contracts, books, v1alpha1.TimeOf(now))
	d.metrics.SetSpend(spend)
	d.metrics.SetSavings(savings)
	d.metrics.SetExpiring(expiring(v.Contracts, v1alpha1.TimeOf(now)))
	if v.Plan != nil {
		conditions := make([]server.Condition, 0, len(v.Plan.Conditions))
		for _, c := range v.Plan.Conditions {
			conditions = append(conditions, server.Condition{Provider: c.Provider, Type: c.Type})
		}
		d.metrics.SetConditions(conditions)
	}
}

// expiring counts the contracts of each tenant that end soon; none is told too,
// for those that have any.
func expiring(l *ledger.Ledger, now v1alpha1.Time) map[string]int {
	out := map[string]int{}
	for c := range l.Contracts() {
		if !c.Status.Phase.Charged() {
			continue
		}
		n := out[c.Metadata.Namespace]
		if ledger.Expiring(c, now) {
			n++
		}
		out[c.Metadata.Namespace] = n
	}
	return out
}

// sums are what each tenant has spent since ever in each currency, and what
// that is below list price.
func sums(l *ledger.Ledger, books ledger.Books, at v1alpha1.Time) (spend, savings []server.Sum) {
	type account struct{ tenant, currency string }
	paid, list := map[account]v1alpha1.Decimal{}, map[account]v1alpha1.Decimal{}
	add := func(a account, amount, atList v1alpha1.Decimal) {
		paid[a], list[a] = paid[a].Add(amount), list[a].Add(atList)
	}
	for c := range l.Contracts() {
		for _, m := range books.CostByMonth(c, at) {
			add(account{c.Metadata.Namespace, c.Spec.Price.Currency}, m.Amount, m.List)
		}
	}
	for _, tenant := range l.Tenants() {
		for _, s := range l.Spends(tenant) {
			for _, e := range s.Entries {
				add(account{tenant, e.Currency}, e.Amount, e.List)
			}
		}
	}
	for a, amount := range paid {
		spend = append(spend, server.Sum{Tenant: a.tenant, Currency: a.currency, Amount: amount})
		savings = append(savings, server.Sum{Tenant: a.tenant, Currency: a.currency, Amount: list[a].Sub(amount)})
	}
	return spend, savings
}
