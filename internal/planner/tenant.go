package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// What a budget does at its limit.
const (
	atLimitWarn = "warn"
	atLimitEnd  = "end"
)

// tenant is a team during a round: its limits, and what its charged contracts
// come to with what the round has decided so far.
type tenant struct {
	name   string
	known  bool
	spec   *v1alpha1.TenantSpec
	totals ledger.Totals
	// leaving is what it gave up and is not seen gone (leaving.go): its quota
	// counts that too.
	leaving ledger.Totals
	// hourly is the price of all charged contracts at their dearest; month is
	// what the calendar month has cost, and will if they all run on.
	hourly, month quantity.Micro
	// share of the fleet and of what, as of shareAt − 1 changes.
	share     int64
	shareName string
	shareAt   int
	// cards held, in thousandths, as of cardsAt − 1 changes.
	cards   int64
	cardsAt int
	// changes counts what was booked since.
	changes int
	// spent of month is gone already.
	spent quantity.Micro
	// Budget limits, unlimited where there are none.
	maxHourly, maxMonthly quantity.Micro
	atLimit               string
	// kinds remembers, by model of the quota, which kinds of card are of it.
	kinds map[string]map[int]bool
}

// tenantOf is a tenant's account, opened on first use.
func (r *round) tenantOf(name string) *tenant {
	if t := r.tenants[name]; t != nil {
		return t
	}
	t := &tenant{name: name, spec: &v1alpha1.TenantSpec{}, kinds: map[string]map[int]bool{}, maxHourly: quantity.Unlimited, maxMonthly: quantity.Unlimited}
	if known := r.w.Tenants[name]; known != nil {
		t.known, t.spec = true, &known.Spec
	}
	r.tenants[name] = t
	t.totals = r.w.Ledger.Totals(name)
	for _, c := range r.givenUp[name] {
		if r.leaves(c) {
			t.leaving.AddHeld(c)
		}
	}
	b := t.spec.Budget
	if b == nil {
		return t
	}
	t.atLimit = b.AtLimit
	if b.Hourly != nil {
		t.maxHourly = r.inFleet(*b.Hourly, b.Currency)
	}
	if b.Monthly != nil {
		t.maxMonthly = r.inFleet(*b.Monthly, b.Currency)
		if spent, err := r.books.MonthSpend(r.w.Ledger, name, r.now); err == nil {
			t.spent = quantity.Micro(spent.Micro())
		}
		t.month = t.spent
	}
	t.hourly = r.costs[name].peak
	if t.maxMonthly < quantity.Unlimited {
		for _, c := range r.held[name] {
			t.month += r.hold(c)
		}
	}
	return t
}

// peak is the most a charged contract costs an hour.
func (r *round) peak(c *v1alpha1.Contract) quantity.Micro {
	if c == nil || !c.Status.Phase.Charged() {
		return 0
	}
	p := c.Spec.Price.Hourly
	for i := range c.Spec.Price.Windows {
		if c.Spec.Price.Windows[i].Hourly.Cmp(p) > 0 {
			p = c.Spec.Price.Windows[i].Hourly
		}
	}
	return r.inFleet(p, c.Spec.Price.Currency)
}

// hold is what a charged contract will still cost this month.
func (r *round) hold(c *v1alpha1.Contract) quantity.Micro {
	if c == nil || !c.Status.Phase.Charged() {
		return 0
	}
	return r.inFleet(r.books.HoldMonthly(c, r.now), c.Spec.Price.Currency)
}

// charge books a contract's change on its tenant's account.
func (r *round) charge(before, after *v1alpha1.Contract) {
	for _, c := range [...]*v1alpha1.Contract{before, after} {
		if c == nil || !c.Status.Phase.Charged() {
			r.chargeLeaving(c, c == before)
			continue
		}
		t := r.tenantOf(c.Metadata.Namespace)
		t.changes++
		sign := quantity.Micro(1)
		if c == before {
			sign = -1
			t.totals.Remove(c)
		} else {
			t.totals.Add(c)
		}
		if t.maxHourly < quantity.Unlimited || t.maxMonthly < quantity.Unlimited {
			t.hourly += sign * r.peak(c)
			if t.maxMonthly < quantity.Unlimited {
				t.month += sign * r.hold(c)
			}
		}
	}
}

// limits are what a placement may still take: of the tenant's quota and budget
// and of the intent's own.
type limits struct {
	tenant *tenant
	// gpu in thousandths of a card, cpu in thousandths of a core, memory in bytes.
	gpu, cpu, memory int64
	// contracts that the tenant may hold beside those it has.
	contracts int64
	byModel   []modelLimit
	// borrowed is what of gpu is beyond the tenant's own quota.
	borrowed        int64
	hourly, monthly quantity.Micro
	// seconds of the month or the term that a placement will cost.
	seconds int64
	// The intent's own, what its other replicas need at the least left out.
	own purse
	// only is the offer that alone may be taken, nil for any; those of avoid may
	// not.
	only  *inventory.Offer
	avoid map[inventory.Key]bool
	// life is for how many seconds an intent's total must last.
	life int64
	// rules on where the replica may stand, nil for none.
	rules *rules
	// bars on providers for what the intent names there, nil for none.
	bars *bars
}

type modelLimit struct {
	model string
	left  int64
	// kinds remembers which kinds of card are of the model.
	kinds map[int]bool
}

func (m *modelLimit) counts(o *inventory.Offer) bool {
	is, known := m.kinds[o.CardKind]
	if !known {
		is = o.Flavor.Spec.GPU != nil && gpunames.Match(m.model, o.Flavor.Spec.GPU.Model)
		m.kinds[o.CardKind] = is
	}
	return is
}

// same reports whether two limits of one tenant, which has not changed in
// between, are equal: only what an intent brings along can differ.
func (l *limits) same(o *limits) bool {
	return l.contracts == o.contracts && l.gpu == o.gpu && l.cpu == o.cpu && l.memory == o.memory && l.seconds == o.seconds && l.own == o.own && l.life == o.life &&
		l.only == o.only && l.avoid == nil && o.avoid == nil && l.rules == nil && o.rules == nil && l.bars == nil && o.bars == nil
}

const noLimit = int64(1) << 60

// limitsOf is what one more contract of a tenant may take.
func (r *round) limitsOf(t *tenant, seconds int64) *limits {
	l := &limits{tenant: t, gpu: noLimit, cpu: noLimit, memory: noLimit, hourly: quantity.Unlimited, monthly: quantity.Unlimited,
		own: purse{quantity.Unlimited, quantity.Unlimited, quantity.Unlimited, quantity.Unlimited, false}, life: seconds}
	held := t.counted()
	most, _ := r.mostContracts(t)
	l.contracts = most - int64(held.Contracts)
	if q := t.spec.Quota; q != nil {
		if q.GPU != nil {
			l.gpu = *q.GPU*1000 - held.MilliCards().Int64()
		}
		if q.CPU != nil {
			l.cpu = q.CPU.Amount(v1alpha1.CPU).Int64() - held.CPU.Int64()
		}
		if q.Memory != nil {
			l.memory = q.Memory.Amount(v1alpha1.Memory).Int64() - held.Memory.Int64()
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
	r.borrow(l)
	if t.atLimit == atLimitWarn {
		return l
	}
	if t.maxHourly < quantity.Unlimited {
		l.hourly = t.maxHourly - t.hourly
	}
	if t.maxMonthly < quantity.Unlimited {
		l.monthly = t.maxMonthly - t.month
		_, end := r.books.MonthBounds(r.now)
		l.seconds = int64(end.Sub(r.now.Time).Seconds())
		if seconds > 0 {
			l.seconds = min(l.seconds, seconds)
		}
	}
	return l
}

// below reports whether limits rule out everything that takes no less than f:
// what breaks would say of each candidate, in one step. It must never rule out
// what breaks allows; thousandths of cards may be off by one (see exact).
func (l *limits) below(f *floor) bool {
	return l.contracts <= 0 || f.milliCards > 0 && f.milliCards > l.gpu+1 || f.cpu > l.cpu || f.memory > l.memory || f.peak > l.hourly ||
		l.monthly < quantity.Unlimited && f.peak.ForSeconds(l.seconds) > l.monthly ||
		f.peak > max(l.own.hourly, l.own.hourlySpot) ||
		l.own.total < quantity.Unlimited && f.peak.ForSeconds(max(l.life, 60)) > l.own.total
}

// breaks is the limit that placing a candidate would break, "" for none.
func (l *limits) breaks(c *candidate) string {
	if l.only != nil && l.only != c.offer {
		return reqOther
	}
	if l.avoid != nil && (l.avoid[inventory.Key{Provider: c.offer.Provider, Name: c.offer.Name}] || l.avoid[inventory.Key{Provider: c.offer.Provider}]) {
		return ReqDenied
	}
	if req := l.bars.breaks(c.offer.Provider); req != "" {
		return req
	}
	if req := l.rules.breaks(c.offer); req != "" {
		return req
	}
	if req := l.breaksQuota(c); req != "" {
		return req
	}
	q := &c.quote
	switch {
	case q.peak > l.hourly:
		return ReqTenantHourly
	case l.monthly < quantity.Unlimited && q.peak.ForSeconds(l.seconds) > l.monthly:
		return ReqTenantMonthly
	case q.class == v1alpha1.Spot && l.own.hourlySpot != l.own.hourly && q.most() > l.own.hourlySpot:
		return ReqMaxHourlySpot
	case (q.class != v1alpha1.Spot || l.own.hourlySpot == l.own.hourly) && q.most() > l.own.hourly:
		return ReqMaxHourly
	case l.own.total < quantity.Unlimited && q.most().ForSeconds(max(l.life, 60)) > l.own.total:
		return ReqMaxTotal
	}
	return ""
}

func (l *limits) breaksQuota(c *candidate) string {
	if l.contracts <= 0 {
		return ReqQuotaCount
	}
	o := c.offer
	if units := c.size.At(quantity.GPU); units > 0 && (l.gpu < noLimit || len(l.byModel) > 0) {
		cards := units * 1000
		if o.UnitsPerCard > 1 {
			cards = (units*1000 + o.UnitsPerCard - 1) / o.UnitsPerCard
		}
		if cards > l.gpu && (o.UnitsPerCard == 1 || !l.exact(c, "")) {
			return ReqQuotaGPU
		}
		for i := range l.byModel {
			m := &l.byModel[i]
			if cards > m.left && m.counts(o) && (o.UnitsPerCard == 1 || !l.exact(c, m.model)) {
				return ReqQuotaByModel
			}
		}
	}
	if c.size.At(quantity.CPU) > l.cpu {
		return ReqQuotaCPU
	}
	if c.size.At(quantity.Memory) > l.memory {
		return ReqQuotaMemory
	}
	return ""
}

// exact decides a quota of cards where shares of cards are added: sevenths do
// not add up in thousandths, so the sum is rounded once, at the end.
func (l *limits) exact(c *candidate, model string) bool {
	trial := l.tenant.counted().Clone()
	g := c.offer.Flavor.Spec.GPU
	trial.Add(&v1alpha1.Contract{
		Spec:   v1alpha1.ContractSpec{GPUs: &v1alpha1.ContractGPU{Count: c.size.At(quantity.GPU), Model: g.Model, UnitsPerGPU: g.UnitsPerGPU}},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved},
	})
	q := l.tenant.spec.Quota
	if model == "" {
		return trial.MilliCards().Int64() <= *q.GPU*1000+l.borrowed
	}
	return trial.MilliCardsOf(func(have string) bool { return gpunames.Match(model, have) }).Int64() <= q.ByModel[model]*1000
}

// limitText is a tenant's limit with its numbers.
func (r *round) limitText(t *tenant, req string) string {
	q, held := t.spec.Quota, t.counted()
	switch req {
	case ReqQuotaGPU:
		return fmt.Sprintf("tenant %s holds %s of %d GPUs", t.name, cards(held.MilliCards().Int64()), *q.GPU) + t.leavingText() + r.borrowLimit(t, quotaCards, v1alpha1.GPU)
	case ReqQuotaCPU:
		return fmt.Sprintf("tenant %s holds %s of %s CPU", t.name, held.CPU.Canonical(v1alpha1.CPU), *q.CPU) + t.leavingText() + r.borrowLimit(t, quotaCPU, v1alpha1.CPU)
	case ReqQuotaCount:
		most, field := r.mostContracts(t)
		return fmt.Sprintf("tenant %s holds %d of %d contracts (%s)", t.name, held.Contracts, most, field) + t.leavingText()
	case ReqQuotaMemory:
		return fmt.Sprintf("tenant %s holds %s of %s memory", t.name, held.Memory.Canonical(v1alpha1.Memory), *q.Memory) + t.leavingText() + r.borrowLimit(t, quotaMemory, v1alpha1.Memory)
	case ReqQuotaByModel:
		var parts []string
		for model, n := range q.ByModel {
			have := held.MilliCardsOf(func(other string) bool { return gpunames.Match(model, other) })
			parts = append(parts, fmt.Sprintf("%s of %d %s", cards(have.Int64()), n, model))
		}
		slices.Sort(parts)
		return fmt.Sprintf("tenant %s holds %s of its quota", t.name, strings.Join(parts, ", ")) + t.leavingText()
	case ReqTenantHourly:
		return fmt.Sprintf("tenant %s spends %s of %s %s/h", t.name, t.hourly.Text(), t.maxHourly.Text(), r.books.Currency)
	case ReqTenantMonthly:
		return fmt.Sprintf("tenant %s has spent and holds %s of %s %s this month", t.name, t.month.Text(), t.maxMonthly.Text(), r.books.Currency)
	}
	return ""
}

// cards prints thousandths of a card.
func cards(milli int64) string {
	if milli%1000 == 0 {
		return fmt.Sprint(milli / 1000)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", milli/1000, milli%1000), "0")
}
