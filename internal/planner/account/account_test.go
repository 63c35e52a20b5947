package account_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

var now = v1alpha1.TimeOf(time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))

func ptr[T any](v T) *T { return &v }

// tenants: one with budgets and a quota that borrows, one with a quota alone, one
// with neither.
func tenants() map[string]*v1alpha1.Tenant {
	vision := v1alpha1.TenantSpec{
		Quota:  &v1alpha1.TenantQuota{GPU: ptr(int64(8)), CPU: ptr(v1alpha1.Quantity("64")), ByModel: map[string]int64{"H100": 4}, MaxBorrow: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(4)}},
		Budget: &v1alpha1.TenantBudget{Hourly: ptr(v1alpha1.MustDecimal("40")), Monthly: ptr(v1alpha1.MustDecimal("20000"))},
	}
	web := v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{GPU: ptr(int64(16)), Memory: ptr(v1alpha1.Quantity("1Ti"))}, Weight: 3}
	out := map[string]*v1alpha1.Tenant{}
	for name, spec := range map[string]v1alpha1.TenantSpec{"vision": vision, "web": web, "labs": {}} {
		out[name] = &v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: name}, Spec: spec}
	}
	return out
}

func contract(t *rapid.T, n int) *v1alpha1.Contract {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{
		Namespace: rapid.SampledFrom([]string{"vision", "web", "labs"}).Draw(t, "tenant"), Name: fmt.Sprintf("c-%d", n),
	}}
	c.Spec.Intent.Name = fmt.Sprintf("i-%d", n%3)
	c.Spec.Provider, c.Spec.Flavor, c.Spec.Consumer = "paris", "h100", "rome"
	c.Spec.Resources = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(rapid.Int64Range(1, 64_000).Draw(t, "cpu")), v1alpha1.Memory: v1alpha1.AmountOf(rapid.Int64Range(1, 1<<40).Draw(t, "memory"))}
	if rapid.Bool().Draw(t, "cards") {
		c.Spec.GPUs = &v1alpha1.ContractGPU{Model: rapid.SampledFrom([]string{"H100", "A100"}).Draw(t, "model"), Count: rapid.Int64Range(1, 9).Draw(t, "units"), UnitsPerGPU: rapid.SampledFrom([]int32{1, 7}).Draw(t, "per card")}
	}
	price := &c.Spec.Price
	price.Hourly, price.Currency, price.Class = v1alpha1.DecimalFromMicro(rapid.Int64Range(0, 9_000_000).Draw(t, "hourly")), "EUR", v1alpha1.OnDemand
	c.Status.Phase = rapid.SampledFrom([]v1alpha1.Phase{v1alpha1.PhaseReserved, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased}).Draw(t, "phase")
	c.Spec.Term.Start = v1alpha1.TimeOf(now.Add(-time.Hour))
	c.Status.Since, c.Status.AccruedAt = c.Spec.Term.Start, now
	if rapid.Bool().Draw(t, "ends") {
		c.Spec.Term.End = v1alpha1.TimeOf(now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "hours")) * time.Hour))
	}
	return c
}

func ledgerOf(list []*v1alpha1.Contract) *ledger.Ledger {
	var ch ledger.Changes
	for _, c := range list {
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	return ledger.Empty().With(ch)
}

// open are the accounts of a ledger; what it is releasing counts while leaves
// is true for it.
func open(l *ledger.Ledger, leaves func(*v1alpha1.Contract) bool) *account.Accounts {
	money, standing := account.Money{Books: ledger.Books{Currency: "EUR", Zone: time.UTC}, Now: now}, account.NewStanding()
	for c := range l.Contracts() {
		standing.Add(c, &money)
	}
	return account.New(account.Source{
		Tenants: tenants(), Ledger: l, Standing: standing, Limits: v1alpha1.Limits{}.Filled(), Money: money,
		Leaving: func(tenant string) (list []*v1alpha1.Contract) {
			for c := range l.Contracts() {
				if c.Metadata.Namespace == tenant && leaves(c) {
					list = append(list, c)
				}
			}
			return list
		},
	})
}

func releasing(c *v1alpha1.Contract) bool { return c.Status.Phase == v1alpha1.PhaseReleasing }

func entry(c *v1alpha1.Contract) account.Entry {
	return account.Entry{Contract: c, Leaving: c != nil && releasing(c)}
}

func all(a *account.Accounts) (text string) {
	for _, name := range a.Names() {
		text += a.Of(name).String() + "\n"
	}
	return text
}

// What is charged one after the other is what the ledger with it comes to.
func TestAccountsAreTheSumOfTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []*v1alpha1.Contract
		for n := range rapid.IntRange(0, 6).Draw(t, "standing") {
			list = append(list, contract(t, n))
		}
		a := open(ledgerOf(list), releasing)
		for n := range rapid.IntRange(0, 6).Draw(t, "charged") {
			next := contract(t, n)
			if n < len(list) {
				next.Metadata = list[n].Metadata
				a.Charge(entry(list[n]), entry(next), now)
				list[n] = next
			} else {
				next.Metadata.Name = fmt.Sprintf("new-%d", n)
				a.Charge(account.Entry{}, entry(next), now)
				list = append(list, next)
			}
		}
		if got, want := all(a), all(open(ledgerOf(list), releasing)); got != want {
			t.Fatalf("%s\nand the ledger comes to\n%s", got, want)
		}
	})
}

// Each change and its inverse leave everything as it was, whenever accounts are
// opened.
func TestChangesAndTheirInversesAreTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := []*v1alpha1.Contract{contract(t, 0), contract(t, 1), contract(t, 2)}
		for _, c := range list {
			c.Status.AccruedAt = c.Spec.Term.Start // an hour of each is spent
		}
		l := ledgerOf(list)
		a, was := open(l, releasing), all(open(l, releasing))
		before, after := entry(rapid.SampledFrom(append(list, nil)).Draw(t, "before")), account.Entry{}
		if rapid.Bool().Draw(t, "replaced") {
			next := contract(t, 3)
			if before.Contract != nil {
				next.Metadata = before.Contract.Metadata
			}
			after = entry(next)
		}
		a.Charge(before, after, now)
		a.Charge(after, before, now)
		if got := all(a); got != was {
			t.Fatalf("charged there and back:\n%s\nwas\n%s", got, was)
		}
		later, changes := now, []account.Change{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			later = v1alpha1.TimeOf(later.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "hours")) * time.Hour))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 3:
				months := map[string]v1alpha1.MonthCost{"2026-11": {Amount: v1alpha1.MustDecimal("3")}, "2026-12": {Amount: v1alpha1.MustDecimal("5")}}
				changes = append(changes, a.Spend(rapid.SampledFrom(a.Names()).Draw(t, "whose"), months, "EUR"))
			case 0:
				changes = append(changes, a.Charge(before, after, later))
			case 1:
				changes = append(changes, a.Expire(before, later))
			case 2:
				changes = append(changes, a.Of(rapid.SampledFrom(a.Names()).Draw(t, "whose")).TurnMonth(quantity.Micro(rapid.IntRange(0, 1000).Draw(t, "held"))))
			}
		}
		for i := range changes {
			changes[len(changes)-1-i].Undo()
		}
		if got := all(a); got != was {
			t.Fatalf("undone:\n%s\nwas\n%s", got, was)
		}
	})
}

// A month that turns forgets what was spent, and a contract that expires gives
// back its quota and its hour, but no money of the month.
func TestExpiry(t *testing.T) {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: "c"}}
	c.Spec.Resources = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(4000)}
	c.Spec.Price.Hourly, c.Spec.Price.Currency = v1alpha1.MustDecimal("2"), "EUR"
	c.Spec.Term.Start, c.Spec.Term.End = v1alpha1.TimeOf(now.Add(-time.Hour)), v1alpha1.TimeOf(now.Add(time.Hour))
	c.Status.Phase, c.Status.AccruedAt = v1alpha1.PhaseActive, c.Spec.Term.Start
	a := open(ledgerOf([]*v1alpha1.Contract{c}), releasing)
	vision := a.Of("vision")
	if b := vision.Budget(); b.Hourly != 2_000_000 || b.Month != 4_000_000 || b.Spent != 2_000_000 {
		t.Fatalf("%+v", b)
	}
	version := vision.Version()
	a.Expire(account.Entry{Contract: c}, now)
	if b := vision.Budget(); b.Hourly != 0 || b.Month != 4_000_000 || vision.Contracts() != 0 || vision.Version() == version {
		t.Errorf("expired: %+v, %d contracts", b, vision.Contracts())
	}
	vision.TurnMonth(500_000)
	if b := vision.Budget(); b.Month != 500_000 || b.Spent != 0 {
		t.Errorf("in the new month: %+v", b)
	}
}

// Seven sevenths of a card are one card, and one seventh more is not.
func TestSharesOfCardsCountExactly(t *testing.T) {
	a := open(ledger.Empty(), releasing)
	card := account.Cards{GPU: &v1alpha1.FlavorGPU{Model: "H100", UnitsPerGPU: 7}, Kind: 1}
	l := a.LimitsOf(a.Of("vision"), 0, now, false)
	for units, want := range map[int64]string{27: "", 28: "", 29: account.QuotaByModel, 57: account.QuotaGPU} {
		if got := l.Breaks(&account.Size{Units: units, PerCard: 7, CPU: 1}, &card, 0); got != want {
			t.Errorf("%d sevenths: %q, want %q", units, got, want)
		}
	}
}

// What others leave unused may be borrowed up to maxBorrow, and is marked.
func TestBorrowing(t *testing.T) {
	a := open(ledger.Empty(), releasing)
	vision, web := a.Of("vision"), a.Of("web")
	own, more := a.LimitsOf(vision, 0, now, false), a.LimitsOf(vision, 0, now, true)
	if own.GPU != 8000 || more.GPU != 12_000 || more.CPU != own.CPU {
		t.Errorf("may take %d of its own and %d with what it borrows", own.GPU, more.GPU)
	}
	if lent := vision.Borrowed(account.Size{Units: 10, PerCard: 1}, nil); lent[v1alpha1.GPU].Int64() != 2 || len(lent) != 1 {
		t.Errorf("ten cards of eight: %v", lent)
	}
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: "c"}}
	c.Spec.GPUs = &v1alpha1.ContractGPU{Model: "A100", Count: 10, UnitsPerGPU: 1}
	c.Spec.Borrowed = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(2)}
	c.Status.Phase = v1alpha1.PhaseActive
	if a.Reclaimable(web, c) {
		t.Error("within its quota a tenant has nothing to give back")
	}
	a.Charge(account.Entry{}, account.Entry{Contract: c}, now)
	if !a.Reclaimable(web, c) || a.Reclaimable(a.Of("labs"), c) || a.Reclaimable(vision, c) {
		t.Error("an owner of the quota, and nobody else, has it back")
	}
}

// What costs more than can be counted leaves nothing of a budget, however much of it
// there is, and everything once it has ended.
func TestAccounts_SumsDoNotWrap(t *testing.T) {
	for n := range 40 {
		var list []*v1alpha1.Contract
		for i := range n {
			c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: fmt.Sprintf("c-%d", i)}}
			c.Spec.Provider, c.Spec.Flavor, c.Spec.Consumer, c.Spec.Intent.Name = "paris", "h100", "rome", "i"
			c.Spec.Price.Hourly, c.Spec.Price.Currency = v1alpha1.MustDecimal("999999999999999999"), "EUR"
			c.Status.Phase, c.Status.Since, c.Status.AccruedAt = v1alpha1.PhaseActive, now, now
			list = append(list, c)
		}
		a := open(ledgerOf(list), releasing)
		vision := a.Of("vision")
		l := a.LimitsOf(vision, 0, now, false)
		if b := vision.Budget(); n > 0 && (l.Hourly >= 0 || l.Monthly >= 0 || b.Hourly <= b.MaxHourly || b.Month <= b.MaxMonthly) {
			t.Errorf("%d contracts: limits %d and %d, budget %+v", n, l.Hourly, l.Monthly, b)
		}
		ahead := a.LimitsAhead(vision, now, v1alpha1.TimeOf(now.Add(time.Hour)), list, list)
		a.Narrow(&ahead, account.Ahead{Booked: list})
		if n > 0 && (ahead.Monthly >= 0 || ahead.Hourly >= 0) {
			t.Errorf("%d contracts: limits ahead %d and %d", n, ahead.Hourly, ahead.Monthly)
		}
		for _, c := range list {
			a.Charge(account.Entry{Contract: c}, account.Entry{}, now)
		}
		if b := vision.Budget(); b.Hourly != 0 || b.Month != 0 {
			t.Errorf("%d contracts have ended: budget %+v", n, b)
		}
	}
}

// What a contract will cost to the end of its term is exact where that is near, and else no less
// than exact, in time that does not grow with the term.
func TestToEnd(t *testing.T) {
	m := account.Money{Books: ledger.Books{Currency: "EUR"}, Now: now}
	c := &v1alpha1.Contract{}
	c.Spec.Price = v1alpha1.ContractPrice{Hourly: v1alpha1.MustDecimal("2"), Currency: "EUR"}
	for range 64 {
		c.Spec.Price.Windows = append(c.Spec.Price.Windows, v1alpha1.ContractPriceWindow{Window: v1alpha1.Window{From: "20:00", To: "06:00"}, Hourly: v1alpha1.MustDecimal("0.1")})
	}
	for days, same := range map[int]bool{3: true, 400: true, 401: false, 1200: false} {
		c.Spec.Term.End = v1alpha1.TimeOf(now.AddDate(0, 0, days))
		exact, is := m.ToEnd(c, true), m.ToEnd(c, false)
		if is < exact || (is == exact) != same {
			t.Errorf("%d days: %s, exactly %s", days, is.Text(), exact.Text())
		}
	}
	c.Spec.Term.End = v1alpha1.TimeOf(time.Date(2199, 12, 31, 0, 0, 0, 0, time.UTC))
	begin := time.Now()
	for range 20 {
		m.ToEnd(c, false)
	}
	if took := time.Since(begin); took > time.Minute { // 400 days are some 10 ms; all of it were 4 s each
		t.Errorf("twenty take %s", took)
	}
}
