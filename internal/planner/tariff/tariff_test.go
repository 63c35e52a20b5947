package tariff

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Prices are what decimals come to, to the last millionth.
func TestHourlyIsExact(t *testing.T) {
	terms := &Terms{Names: quantity.NewNames("capacity.")}
	rapid.Check(t, func(t *rapid.T) {
		money := func(name string, most int) v1alpha1.Decimal {
			return v1alpha1.DecimalFromInt(rapid.Int64Range(0, int64(most)*1_000_000).Draw(t, name)).DivInt(1_000_000, 6)
		}
		gpu, cpu, memory := money("gpu", 100), money("cpu", 10), money("memoryGi", 1)
		size := quantity.Vector{rapid.Int64Range(0, 1<<20).Draw(t, "milli"), rapid.Int64Range(0, 1<<42).Draw(t, "bytes"), 0, 0, rapid.Int64Range(0, 4096).Draw(t, "units")}
		tariff := New(terms, &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": gpu, "cpu": cpu, "memoryGi": memory}})
		want := new(big.Rat)
		add := func(price v1alpha1.Decimal, n, of int64) {
			p, _ := new(big.Rat).SetString(price.String())
			want.Add(want, p.Mul(p, big.NewRat(n, of)))
		}
		add(gpu, size[quantity.GPU], 1)
		add(cpu, size[quantity.CPU], 1000)
		add(memory, size[quantity.Memory], 1<<30)
		got := tariff.onDemand.Hourly(size, nil).Decimal().String()
		if text := want.FloatString(6); v1alpha1.MustDecimal(text).Cmp(v1alpha1.MustDecimal(got)) != 0 {
			t.Fatalf("%s, want %s", got, text)
		}
	})
}

// A price is never counted as less than it states: one that cannot be counted is none,
// with its reason, and a higher one is never less.
func TestNew_PricesThatCannotBeCounted(t *testing.T) {
	gpu := func(text string) *v1alpha1.Price {
		return &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(text)}}
	}
	last := int64(0)
	for _, text := range []string{"0", "3999999.999999", "4000000", "4611687", "5000000", "9223372", "9223373", "10000000", "999999999999999999"} {
		if n := Pico(v1alpha1.MustDecimal(text), one); n < last {
			t.Errorf("%s counts as %d, less than what is below it, %d", text, n, last)
		} else {
			last = n
		}
	}
	flat, rial := v1alpha1.MustDecimal("24000000"), gpu("5")
	rial.Currency = "EUR"
	terms := func(counted bool) *Terms {
		return &Terms{Names: quantity.NewNames("capacity."), Counted: counted, Books: ledger.Books{
			Currency: "IRR", Rates: []v1alpha1.Rate{{From: "EUR", To: "IRR", Rate: v1alpha1.MustDecimal("1150000")}},
		}}
	}
	with := func(change func(p *v1alpha1.Price)) *v1alpha1.Price {
		p := gpu("1")
		change(p)
		return p
	}
	high := v1alpha1.UnitPrices{"cpu": v1alpha1.MustDecimal("999999999999999999")}
	for name, tc := range map[string]struct {
		price *v1alpha1.Price
		of    string // what is too high, "" for none
	}{
		"ordinary": {gpu("2.80"), ""}, "the most": {gpu("4000000"), ""}, "more": {gpu("4000000.01"), "gpu"},
		"by a rate": {rial, "gpu"}, "flat": {&v1alpha1.Price{Flat: &flat}, "flat"},
		"spot":     {with(func(p *v1alpha1.Price) { p.Spot = high }), "cpu"},
		"reserved": {with(func(p *v1alpha1.Price) { p.Reserved = &v1alpha1.ReservedPrice{UnitPrices: high} }), "cpu"},
		"window":   {with(func(p *v1alpha1.Price) { p.Windows = []v1alpha1.PriceWindow{{PerHour: high}} }), "cpu"},
	} {
		why := New(terms(true), tc.price).Why()
		if (why == "") != (tc.of == "") || tc.of != "" && !strings.HasPrefix(why, "its price of "+tc.of+" is over 4000000 IRR an hour") {
			t.Errorf("%s: got %q", name, why)
		}
		if why := New(terms(false), tc.price).Why(); why != "" {
			t.Errorf("%s, by the rules of before: got %q", name, why)
		}
	}
}
