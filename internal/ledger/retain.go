package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// DefaultRetention is how long ended contracts stay in the tree when the fleet
// does not say.
const DefaultRetention = 168 * time.Hour

// Retention is how long ended contracts stay in the tree of a fleet that says keep;
// 0 or less is none said.
func Retention(keep time.Duration) time.Duration {
	if keep <= 0 {
		return DefaultRetention
	}
	return keep
}

// Retire is the changes by which contracts that ended before now − keep leave
// the tree. What each cost moves, month by month, into its tenant's spend
// files, and in sum into its intent's state, so that no budget notices. What a month of
// them has no room for stays where it is. An
// intent's state leaves with its last contract only when gone says that the
// intent itself is no more (nil: never).
func (b Books) Retire(l *Ledger, now v1alpha1.Time, keep time.Duration, gone func(tenant, intent string) bool) Changes {
	keep = Retention(keep)
	return b.RetireEach(l, now, func(*v1alpha1.Contract) time.Duration { return keep }, gone)
}

// RetireEach is Retire with a time for each contract, above 0.
func (b Books) RetireEach(l *Ledger, now v1alpha1.Time, keep func(*v1alpha1.Contract) time.Duration, gone func(tenant, intent string) bool) Changes {
	var ch Changes
	spends := map[string]*v1alpha1.Spend{}
	for _, tenant := range l.Tenants() {
		for _, intent := range l.intentNames(tenant) {
			n := l.intent(tenant, intent)
			var old []*v1alpha1.Contract
			for _, c := range n.contracts {
				if Ended(c.Status.Phase) && c.Status.Since.Before(now.Add(-keep(c))) && b.carry(l, spends, c) {
					old = append(old, c)
					ch.Contracts = append(ch.Contracts, model.Change{Before: c})
				}
			}
			if s := b.stateAfter(n, old, tenant, intent, gone); s != nil {
				ch.States = append(ch.States, *s)
			}
		}
	}
	for _, name := range sortedKeys(spends) {
		s := spends[name]
		slices.SortFunc(s.Entries, func(a, o v1alpha1.SpendEntry) int { return strings.Compare(a.Contract, o.Contract) })
		ch.Spends = append(ch.Spends, s)
	}
	return ch
}

// maxSpent is how many contracts a month of a tenant's spend may name: the longest names and
// amounts of so many stay below maxFile.
const maxSpent = 24_000

// carry adds an ended contract's cost to copies of its tenant's spend files, and reports
// whether it could: one for which a month has no room stays in the tree.
func (b Books) carry(l *Ledger, spends map[string]*v1alpha1.Spend, c *v1alpha1.Contract) bool {
	tenant := c.Metadata.Namespace
	for month := range c.Status.Months {
		s := spends[SpendPath(tenant, month)]
		if s == nil {
			s = l.Spend(tenant, month)
		}
		if s != nil && len(s.Entries) >= maxSpent {
			return false
		}
	}
	for _, month := range sortedKeys(c.Status.Months) {
		cost := c.Status.Months[month]
		if cost.Amount.IsZero() && cost.List.IsZero() {
			continue
		}
		name := SpendPath(tenant, month)
		s := spends[name]
		if s == nil {
			s = &v1alpha1.Spend{
				TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend},
				Metadata: v1alpha1.Metadata{Name: month, Namespace: tenant},
			}
			if old := l.Spend(tenant, month); old != nil {
				s.Entries = slices.Clone(old.Entries)
			}
			spends[name] = s
		}
		s.Entries = append(s.Entries, v1alpha1.SpendEntry{
			Contract: c.Metadata.Name, Intent: c.Spec.Intent.Name, Provider: c.Spec.Provider,
			Amount: cost.Amount, List: cost.List, Currency: c.Spec.Price.Currency,
		})
	}
	return true
}

// stateAfter is how an intent's state changes when old contracts leave, nil
// when it does not.
func (b Books) stateAfter(n *intentNode, old []*v1alpha1.Contract, tenant, intent string, gone func(string, string) bool) *model.StateChange {
	if n.state == nil {
		return nil
	}
	if len(old) == len(n.contracts) && gone != nil && gone(tenant, intent) {
		return &model.StateChange{Before: n.state}
	}
	sum := v1alpha1.Zero
	currency := n.state.Status.Currency
	if n.state.Status.Spent != nil {
		sum = *n.state.Status.Spent
	}
	if currency == "" {
		currency = b.Currency
	}
	changed := false
	for _, c := range old {
		if c.Status.Accrued == nil || c.Status.Accrued.IsZero() {
			continue
		}
		sum, changed = sum.Add(b.Into(*c.Status.Accrued, c.Spec.Price.Currency, currency, c.Status.Since)), true
	}
	if !changed {
		return nil
	}
	after := *n.state
	after.Status.Spent, after.Status.Currency = &sum, currency
	return &model.StateChange{Before: n.state, After: &after}
}

// Into converts by the rate of the contract's end. Without a rate the figure
// is taken over as it stands: the fleet changed its currency and left no way
// to convert, and losing the amount would be worse than misnaming it.
func (b Books) Into(amount v1alpha1.Decimal, from, to string, at v1alpha1.Time) v1alpha1.Decimal {
	if from == to || from == "" {
		return amount
	}
	if r := b.RateOf(from, to, at); r != nil {
		return amount.Mul(r.Rate).Round(places)
	}
	return amount
}

func (l *Ledger) intentNames(tenant string) []string {
	var out []string
	for _, s := range l.tenants[tenant].shards {
		for name := range s.intents {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
