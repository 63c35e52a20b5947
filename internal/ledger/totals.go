package ledger

import (
	"maps"
	"math/big"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Totals is what a set of charged contracts comes to, for quotas and budgets.
// The zero value is nothing. It is a plain value: Clone before changing one
// that somebody else holds.
type Totals struct {
	// Contracts that are charged.
	Contracts int
	// CPU in thousandths of a core, Memory in bytes.
	CPU, Memory v1alpha1.Amount
	// Hourly is the price of all together by currency, outside price windows.
	Hourly map[string]v1alpha1.Decimal
	// units are the GPU units by model and units per card: shares of cards
	// cannot be added exactly in any one decimal unit (a MIG card has seven).
	units map[unitKind]int64
}

type unitKind struct {
	model   string
	perCard int32
}

// Add counts a contract, unless its phase is not charged.
func (t *Totals) Add(c *v1alpha1.Contract) { t.count(c, 1) }

// Remove takes back what Add counted.
func (t *Totals) Remove(c *v1alpha1.Contract) { t.count(c, -1) }

// AddHeld counts a contract whatever its phase.
func (t *Totals) AddHeld(c *v1alpha1.Contract) { t.countHeld(c, 1) }

// RemoveHeld takes back what AddHeld counted.
func (t *Totals) RemoveHeld(c *v1alpha1.Contract) { t.countHeld(c, -1) }

func (t *Totals) count(c *v1alpha1.Contract, sign int64) {
	if c.Status.Phase.Charged() {
		t.countHeld(c, sign)
	}
}

func (t *Totals) countHeld(c *v1alpha1.Contract, sign int64) {
	t.Contracts += int(sign)
	r := c.Spec.Resources
	t.CPU = v1alpha1.AmountOf(t.CPU.Int64() + sign*r[v1alpha1.CPU].Int64())
	t.Memory = v1alpha1.AmountOf(t.Memory.Int64() + sign*r[v1alpha1.Memory].Int64())
	t.addHourly(c.Spec.Price.Currency, c.Spec.Price.Hourly.MulInt(sign))
	if g := c.Spec.GPUs; g != nil && g.Count != 0 {
		t.addUnits(unitKind{g.Model, max(g.UnitsPerGPU, 1)}, sign*g.Count)
	}
}

func (t *Totals) addHourly(currency string, amount v1alpha1.Decimal) {
	if t.Hourly == nil {
		t.Hourly = map[string]v1alpha1.Decimal{}
	}
	if sum := t.Hourly[currency].Add(amount); sum.IsZero() {
		delete(t.Hourly, currency)
	} else {
		t.Hourly[currency] = sum
	}
}

func (t *Totals) addUnits(k unitKind, n int64) {
	if t.units == nil {
		t.units = map[unitKind]int64{}
	}
	if t.units[k] += n; t.units[k] == 0 {
		delete(t.units, k)
	}
}

func (t *Totals) addTotals(o Totals) {
	t.Contracts += o.Contracts
	t.CPU, t.Memory = t.CPU.Add(o.CPU), t.Memory.Add(o.Memory)
	for currency, amount := range o.Hourly {
		t.addHourly(currency, amount)
	}
	for k, n := range o.units {
		t.addUnits(k, n)
	}
}

// With is the sum of both; neither changes.
func (t Totals) With(o Totals) Totals {
	sum := t.Clone()
	sum.addTotals(o)
	return sum
}

// Clone is a copy that may be changed.
func (t Totals) Clone() Totals {
	t.Hourly, t.units = maps.Clone(t.Hourly), maps.Clone(t.units)
	return t
}

// MilliCards is all GPU units in thousandths of a card, rounded up once at the
// end: seven sevenths of a card are exactly 1000.
func (t Totals) MilliCards() v1alpha1.Amount {
	return t.milli(func(string) bool { return true })
}

// MilliCardsOf is MilliCards of the models for which match is true.
func (t Totals) MilliCardsOf(match func(model string) bool) v1alpha1.Amount {
	return t.milli(match)
}

func (t Totals) milli(match func(string) bool) v1alpha1.Amount {
	perKind := map[int32]int64{}
	for k, n := range t.units {
		if match(k.model) {
			perKind[k.perCard] += n
		}
	}
	var whole int64
	if n, only := perKind[1]; len(perKind) == 0 || only && len(perKind) == 1 {
		return v1alpha1.AmountOf(n * 1000) // whole cards, as nearly always
	}
	sum := new(big.Rat)
	for perCard, n := range perKind {
		if perCard == 1 {
			whole += n
			continue
		}
		sum.Add(sum, big.NewRat(n, int64(perCard)))
	}
	sum.Add(sum, new(big.Rat).SetInt64(whole))
	sum.Mul(sum, big.NewRat(1000, 1))
	q, r := new(big.Int).QuoRem(sum.Num(), sum.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return v1alpha1.AmountOf(q.Int64())
}

// ByModel is MilliCards of each model.
func (t Totals) ByModel() map[string]v1alpha1.Amount {
	out := map[string]v1alpha1.Amount{}
	for k := range t.units {
		if _, done := out[k.model]; !done {
			out[k.model] = t.milli(func(m string) bool { return m == k.model })
		}
	}
	return out
}
