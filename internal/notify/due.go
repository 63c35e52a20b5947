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

// Due are the events that only the clock brings: contracts that end soon, contracts that
// break their sla by an outage that goes on or by not being usable yet, and budgets that
// are spent to 80 and to 100 per cent. They are the same from the moment on that they are
// due. asked is as for Since, which tells how breaches end.
func Due(fleet string, l *ledger.Ledger, tenants map[string]*v1alpha1.Tenant, books ledger.Books, asked func(tenant, intent string) *v1alpha1.SLA, now v1alpha1.Time) []Event {
	var out []Event
	for c := range l.Contracts() {
		if e, due := breachDue(fleet, c, asked, now); due {
			out = append(out, e)
		}
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

// breachDue is a contract's breach of its sla that has no end yet. One of availability is
// told of its first outage alone, as Since does.
func breachDue(fleet string, c *v1alpha1.Contract, asked func(tenant, intent string) *v1alpha1.SLA, now v1alpha1.Time) (Event, bool) {
	if asked == nil || !c.Status.Phase.Charged() {
		return Event{}, false
	}
	sla := asked(c.Metadata.Namespace, c.Spec.Intent.Name)
	kind, why := ledger.Breach(c, sla, nil, now)
	switch kind {
	case ledger.BreachLate:
		at := v1alpha1.TimeOf(c.Spec.Term.Start.Add(sla.MaxTimeToActive.Duration))
		return named(ofContract(fleet, "sla", c, at, codeSLA, "breaks its sla on "+place(c)+because(codeSLA+": "+why)), kind), true
	case ledger.BreachAvailability:
		if told, _ := ledger.FirstShort(c, sla); told != nil || c.Status.Phase != v1alpha1.PhaseDegraded {
			return Event{}, false
		}
		e := ofContract(fleet, "sla", c, c.Status.Since, codeSLA, "breaks its sla on "+place(c)+because(codeSLA+": "+why)+", and is out since "+stamp(c.Status.Since))
		return named(e, kind+" "+stamp(c.Status.Since)), true
	}
	return Event{}, false
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
