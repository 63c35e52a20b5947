package notify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// levels of a monthly budget that are told, in per cent.
var levels = []int64{100, 80}

// Due are the events that only the clock brings: contracts that end soon, and
// budgets that are spent to 80 and to 100 per cent. They are the same from the
// moment on that they are due.
func Due(fleet string, l *ledger.Ledger, tenants map[string]*v1alpha1.Tenant, books ledger.Books, now v1alpha1.Time) []Event {
	var out []Event
	for c := range l.Contracts() {
		if ledger.Expiring(c, now) {
			end := c.Spec.Term.End
			e := ofContract(fleet, "expiring", c, v1alpha1.TimeOf(end.Add(-ledger.LeadTime(c.Spec.Term))), "",
				"ends "+stamp(end)+" on "+place(c)+": a longer schedule.duration extends it")
			out = append(out, named(e, stamp(end)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		if e, due := budgetDue(fleet, l, tenants[name], books, now); due {
			out = append(out, e)
		}
	}
	return out
}

// budgetDue is the highest level that a tenant's month has reached.
func budgetDue(fleet string, l *ledger.Ledger, t *v1alpha1.Tenant, books ledger.Books, now v1alpha1.Time) (Event, bool) {
	b := t.Spec.Budget
	if b == nil || b.Monthly == nil || b.Monthly.Sign() <= 0 {
		return Event{}, false
	}
	limit, err := books.Convert(*b.Monthly, b.Currency, now)
	if err != nil {
		return Event{}, false // the fleet's own check says that a rate is missing
	}
	spent, err := books.MonthSpend(l, t.Metadata.Name, now)
	if err != nil {
		return Event{}, false
	}
	for _, level := range levels {
		if spent.MulInt(100).Cmp(limit.MulInt(level)) < 0 {
			continue
		}
		month := books.Month(now)
		e := Event{
			Kind: "budget", At: now, Fleet: fleet, Tenant: t.Metadata.Name, Reason: fmt.Sprintf("Budget%d", level), Currency: books.Currency,
			Text: fmt.Sprintf("%s has spent %s of %s %s of %s: %d %% of its budget", t.Metadata.Name, spent.Text(), limit.Text(), books.Currency, month, level),
		}
		return named(e, fmt.Sprintf("%s %d", month, level)), true
	}
	return Event{}, false
}
