package account

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Text is one of a tenant's limits with its numbers, "" for what is none.
func (a *Accounts) Text(t *Tenant, limit string) string {
	q, held := t.Spec.Quota, t.counted()
	switch limit {
	case QuotaGPU:
		return fmt.Sprintf("tenant %s holds %s of %d GPUs", t.Name, CardsText(held.MilliCards().Int64()), *q.GPU) + t.restText() + a.borrowText(t, GPUs)
	case QuotaCPU:
		return fmt.Sprintf("tenant %s holds %s of %s CPU", t.Name, held.CPU.Canonical(v1alpha1.CPU), *q.CPU) + t.restText() + a.borrowText(t, CPU)
	case QuotaCount:
		most, field := a.Most(t)
		return fmt.Sprintf("tenant %s holds %d of %d contracts (%s)", t.Name, held.Contracts, most, field) + t.restText()
	case QuotaMemory:
		return fmt.Sprintf("tenant %s holds %s of %s memory", t.Name, held.Memory.Canonical(v1alpha1.Memory), *q.Memory) + t.restText() + a.borrowText(t, Memory)
	case QuotaByModel:
		var parts []string
		for model, n := range q.ByModel {
			have := held.MilliCardsOf(func(other string) bool { return gpunames.Match(model, other) })
			parts = append(parts, fmt.Sprintf("%s of %d %s", CardsText(have.Int64()), n, model))
		}
		slices.Sort(parts)
		return fmt.Sprintf("tenant %s holds %s of its quota", t.Name, strings.Join(parts, ", ")) + t.restText()
	case BudgetHourly:
		return fmt.Sprintf("tenant %s spends %s of %s %s/h", t.Name, t.hourly.Micro().Text(), t.maxHourly.Text(), a.Money.Books.Currency) + t.keptText(t.kept.hourly.Micro().Text())
	case BudgetMonthly:
		return fmt.Sprintf("tenant %s has spent and holds %s of %s %s this month", t.Name, t.month.Micro().Text(), t.maxMonthly.Text(), a.Money.Books.Currency) + t.keptText(t.kept.month.Micro().Text())
	}
	return ""
}

// CardsText prints thousandths of a card.
func CardsText(milli int64) string {
	if milli%1000 == 0 {
		return fmt.Sprint(milli / 1000)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", milli/1000, milli%1000), "0")
}

// restText is what of the quota is leaving and what is kept, "" for nothing.
func (t *Tenant) restText() string {
	return t.leavingText() + t.keptText("room for "+strconv.Itoa(t.kept.totals.Contracts)+" more")
}

// keptText says that so much is kept for claims, "" where nothing is.
func (t *Tenant) keptText(what string) string {
	if t.kept.totals.Contracts == 0 {
		return ""
	}
	return ", and " + what + " is kept for an intent that others give way to"
}

// leavingText is what of the quota is leaving, "" for nothing.
func (t *Tenant) leavingText() string {
	switch n := t.leaving.Contracts; n {
	case 0:
		return ""
	case 1:
		return ", 1 contract among them that is being released and not seen gone"
	default:
		return fmt.Sprintf(", %d contracts among them that are being released and not seen gone", n)
	}
}

// borrowText is how a limit reads of which a tenant may borrow more, "" where it
// may not.
func (a *Accounts) borrowText(t *Tenant, k Resource) string {
	most := t.MayBorrow(k)
	if most <= 0 {
		return ""
	}
	unit := int64(1)
	if k == GPUs {
		unit = 1000
	}
	return fmt.Sprintf(" and may borrow %s, of which others leave %s", v1alpha1.AmountOf(most/unit).Canonical(names[k]),
		v1alpha1.AmountOf(max(a.unused(k), 0)/unit).Canonical(names[k]))
}

// LoanText is what of some contracts is borrowed, "" for nothing.
func LoanText(list []*v1alpha1.Contract) string {
	sum := v1alpha1.Resources{}
	for _, c := range list {
		for name, n := range c.Spec.Borrowed {
			sum[name] = sum[name].Add(n)
		}
	}
	var parts []string
	for _, name := range sum.Names() {
		label := name
		if name == v1alpha1.GPU {
			if label = "GPUs"; sum[name].Int64() == 1 {
				label = "GPU"
			}
		}
		parts = append(parts, sum[name].Canonical(name)+" "+label)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "borrows " + strings.Join(parts, ", ") + " of quota that others leave unused, until they ask for it"
}

// Warning is which limit of a budget is or will be exceeded, "" when none is;
// forecast is what the month is expected to cost in total.
func (b *Budget) Warning(forecast quantity.Micro, currency string) string {
	monthly := b.MaxMonthly < quantity.Unlimited
	cur := " " + currency
	switch {
	case monthly && b.Spent >= b.MaxMonthly:
		return "has spent " + b.Spent.Text() + " of " + b.MaxMonthly.Text() + cur + " this month"
	case monthly && b.Month > b.MaxMonthly:
		return "has spent and holds " + b.Month.Text() + " of " + b.MaxMonthly.Text() + cur + " this month"
	case monthly && forecast > b.MaxMonthly:
		return "is forecast to spend " + forecast.Text() + " of " + b.MaxMonthly.Text() + cur + " this month"
	case b.MaxHourly < quantity.Unlimited && b.Hourly > b.MaxHourly:
		return "spends " + b.Hourly.Text() + " of " + b.MaxHourly.Text() + cur + "/h"
	}
	return ""
}

// String is all that is on the account, for tests to compare: accounts with equal
// ones hold, owe and may the same.
func (t *Tenant) String() string {
	return fmt.Sprintf("%s holds %+v, leaving %+v, %d of %d an hour, %d with %d spent of %d this month, charged %v of later ones, keeps %+v, %d an hour, %d this month",
		t.Name, t.totals, t.leaving, t.hourly.Micro(), t.maxHourly, t.month.Micro(), t.spent.Micro(), t.maxMonthly, t.later, t.kept.totals, t.kept.hourly.Micro(), t.kept.month.Micro())
}
