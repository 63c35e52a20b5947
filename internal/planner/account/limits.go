package account

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Limits of a tenant by name, as refusals count them.
const (
	QuotaGPU      = "quota.gpu"
	QuotaCPU      = "quota.cpu"
	QuotaMemory   = "quota.memory"
	QuotaCount    = "quota.contracts"
	QuotaByModel  = "quota.byModel"
	BudgetHourly  = "budget.tenant.hourly"
	BudgetMonthly = "budget.tenant.monthly"
)

// Cards are the cards that are asked for.
type Cards struct {
	// GPU describes them, nil where there are none; Kind numbers that: cards of one
	// kind are of equal GPU.
	GPU  *v1alpha1.FlavorGPU
	Kind int
}

// Limits are what one more contract of a tenant may take: of its quota and of
// its budget. They hold while the account's Version does.
type Limits struct {
	Tenant *Tenant
	// GPU in thousandths of a card, CPU in thousandths of a core, Memory in bytes.
	GPU, CPU, Memory int64
	// Contracts that the tenant may hold in addition to those it has.
	Contracts int64
	// Hourly and Monthly are money.
	Hourly, Monthly quantity.Micro
	// Seconds of the month or the term that a placement will cost.
	Seconds int64
	byModel []modelLimit
	// borrowed is what of GPU is beyond the tenant's own quota; Borrows: what may be borrowed
	// is counted.
	borrowed int64
	Borrows  bool
	// ahead: an instant in the future leaves less than now (ahead.go).
	ahead bool
}

type modelLimit struct {
	model string
	left  int64
	// kinds remembers which kinds of card are of the model.
	kinds map[int]bool
}

func (m *modelLimit) counts(c *Cards) bool {
	is, known := m.kinds[c.Kind]
	if !known {
		is = c.GPU != nil && gpunames.Match(m.model, c.GPU.Model)
		m.kinds[c.Kind] = is
	}
	return is
}

// noLimit is one that no quota reaches.
const noLimit = int64(1) << 60

// LimitsOf is what one more contract of a tenant may take as of an instant, for
// so many seconds (0: without an end); borrow: of what others leave of their
// quotas too.
func (a *Accounts) LimitsOf(t *Tenant, seconds int64, now v1alpha1.Time, borrow bool) Limits {
	l := Limits{Tenant: t, GPU: noLimit, CPU: noLimit, Memory: noLimit, Hourly: quantity.Unlimited, Monthly: quantity.Unlimited}
	a.quotaLeft(&l, t.taken())
	if borrow {
		a.widen(&l)
	}
	if t.atLimit == AtLimitWarn {
		return l
	}
	if t.maxHourly < quantity.Unlimited {
		l.Hourly = t.maxHourly.Minus(t.hourly.Micro()).Minus(t.kept.hourly.Micro())
	}
	if t.LimitedMonthly() {
		l.Monthly = t.maxMonthly.Minus(t.month.Micro()).Minus(t.kept.month.Micro())
		_, end := a.Money.Books.MonthBounds(now)
		l.Seconds = int64(end.Sub(now.Time).Seconds())
		if seconds > 0 {
			l.Seconds = min(l.Seconds, seconds)
		}
	}
	return l
}

// quotaLeft fills in what a quota leaves where so much of it is taken.
func (a *Accounts) quotaLeft(l *Limits, held ledger.Totals) {
	t := l.Tenant
	most, _ := a.Most(t)
	l.Contracts = most - int64(held.Contracts)
	q := t.Spec.Quota
	if q == nil {
		return
	}
	if q.GPU != nil {
		l.GPU = *q.GPU*1000 - held.MilliCards().Int64()
	}
	if q.CPU != nil {
		l.CPU = q.CPU.Amount(v1alpha1.CPU).Int64() - held.CPU.Int64()
	}
	if q.Memory != nil {
		l.Memory = q.Memory.Amount(v1alpha1.Memory).Int64() - held.Memory.Int64()
	}
	for model, cards := range q.ByModel {
		have := held.MilliCardsOf(func(other string) bool { return gpunames.Match(model, other) })
		if t.kinds[model] == nil {
			t.kinds[model] = map[int]bool{}
		}
		l.byModel = append(l.byModel, modelLimit{model, cards*1000 - have.Int64(), t.kinds[model]})
	}
	slices.SortFunc(l.byModel, func(a, b modelLimit) int { return strings.Compare(a.model, b.model) })
}

// Same reports whether two limits of one tenant, which has not changed in
// between, are equal.
func (l *Limits) Same(o *Limits) bool {
	return l.Contracts == o.Contracts && l.GPU == o.GPU && l.CPU == o.CPU && l.Memory == o.Memory && l.Seconds == o.Seconds
}

// Below reports whether limits rule out everything that takes no less: what
// Breaks would return for each, in one step. It must never rule out what Breaks
// allows; thousandths of cards may be off by one (see exact).
func (l *Limits) Below(milliCards, cpu, memory int64, peak quantity.Micro) bool {
	return l.Contracts <= 0 || milliCards > 0 && milliCards > l.GPU+1 || cpu > l.CPU || memory > l.Memory || peak > l.Hourly ||
		l.Monthly < quantity.Unlimited && peak.ForSeconds(l.Seconds) > l.Monthly
}

// Breaks is the limit that one more contract would break, "" for none.
func (l *Limits) Breaks(s *Size, cards *Cards, peak quantity.Micro) string {
	if l.Contracts <= 0 {
		return QuotaCount
	}
	if s.Units > 0 && (l.GPU < noLimit || len(l.byModel) > 0) {
		milli := s.milliCards()
		if milli > l.GPU && (s.PerCard <= 1 || l.ahead || !l.exact(s, cards, "")) {
			return QuotaGPU
		}
		for i := range l.byModel {
			m := &l.byModel[i]
			if milli > m.left && m.counts(cards) && (s.PerCard <= 1 || l.ahead || !l.exact(s, cards, m.model)) {
				return QuotaByModel
			}
		}
	}
	switch {
	case s.CPU > l.CPU:
		return QuotaCPU
	case s.Memory > l.Memory:
		return QuotaMemory
	case peak > l.Hourly:
		return BudgetHourly
	case l.Monthly < quantity.Unlimited && peak.ForSeconds(l.Seconds) > l.Monthly:
		return BudgetMonthly
	}
	return ""
}

// exact decides a quota of cards where shares of cards are added: sevenths do
// not add up in thousandths, so the sum is rounded once, at the end.
func (l *Limits) exact(s *Size, cards *Cards, model string) bool {
	trial := l.Tenant.taken().Clone()
	trial.Add(&v1alpha1.Contract{
		Spec:   v1alpha1.ContractSpec{GPUs: &v1alpha1.ContractGPU{Count: s.Units, Model: cards.GPU.Model, UnitsPerGPU: cards.GPU.UnitsPerGPU}},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved},
	})
	q := l.Tenant.Spec.Quota
	if model == "" {
		return trial.MilliCards().Int64() <= *q.GPU*1000+l.borrowed
	}
	return trial.MilliCardsOf(func(have string) bool { return gpunames.Match(model, have) }).Int64() <= q.ByModel[model]*1000
}
