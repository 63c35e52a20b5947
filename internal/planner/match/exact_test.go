package match

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Prices are what decimals come to, to the last millionth.
func TestHourlyIsExact(t *testing.T) {
	m := empty()
	rapid.Check(t, func(t *rapid.T) {
		money := func(name string, most int) v1alpha1.Decimal {
			return v1alpha1.DecimalFromInt(rapid.Int64Range(0, int64(most)*1_000_000).Draw(t, name)).DivInt(1_000_000, 6)
		}
		gpu, cpu, memory := money("gpu", 100), money("cpu", 10), money("memoryGi", 1)
		size := quantity.Vector{rapid.Int64Range(0, 1<<20).Draw(t, "milli"), rapid.Int64Range(0, 1<<42).Draw(t, "bytes"), 0, 0, rapid.Int64Range(0, 4096).Draw(t, "units")}
		tariff := m.newTariff(&v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": gpu, "cpu": cpu, "memoryGi": memory}})
		want := new(big.Rat)
		add := func(price v1alpha1.Decimal, n, of int64) {
			p, _ := new(big.Rat).SetString(price.String())
			want.Add(want, p.Mul(p, big.NewRat(n, of)))
		}
		add(gpu, size[quantity.GPU], 1)
		add(cpu, size[quantity.CPU], 1000)
		add(memory, size[quantity.Memory], 1<<30)
		got := tariff.onDemand.hourly(size, nil).Decimal().String()
		if text := want.FloatString(6); v1alpha1.MustDecimal(text).Cmp(v1alpha1.MustDecimal(got)) != 0 {
			t.Fatalf("%s, want %s", got, text)
		}
	})
}

// The terms of a score are always from 0 to 1, and never not a number.
func TestTermsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) quantity.Vector {
			return quantity.Vector{rapid.Int64Range(-10, 10).Draw(t, name), rapid.Int64Range(-10, 10).Draw(t, name), 0, 0, rapid.Int64Range(-10, 10).Draw(t, name)}
		}
		free, capacity, size := draw("free"), draw("capacity"), draw("size")
		for _, f := range []float64{
			resourceTerm(free, capacity, size, true), resourceTerm(free, capacity, size, false),
			costTerm(quantity.Micro(rapid.Int64().Draw(t, "price")), quantity.Micro(rapid.Int64Range(0, 5).Draw(t, "most")), false),
			latencyTerm(rapid.Int64().Draw(t, "ms"), true),
		} {
			if !(f >= 0 && f <= 1) {
				t.Fatal(f)
			}
		}
	})
}

func TestResourceTerm(t *testing.T) {
	capacity := quantity.Vector{100, 100, 0, 0, 10}
	for name, c := range map[string]struct {
		free, size quantity.Vector
		cards      bool
		want       float64
	}{
		"half of all is left":         {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{50, 50, 0, 0, 5}, true, 0.5},
		"cards without cores":         {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{100, 50, 0, 0, 5}, true, (0.5*0.5 + 0.25*0.5) * 0.5},
		"the last card":               {quantity.Vector{50, 50, 0, 0, 1}, quantity.Vector{0, 0, 0, 0, 1}, true, 0.25},
		"cores beside idle cards":     {quantity.Vector{100, 100, 0, 0, 10}, quantity.Vector{50, 50}, false, 0.25},
		"cores where cards are gone":  {quantity.Vector{100, 100, 0, 0, 0}, quantity.Vector{50, 50}, false, 0.5},
		"more than there is (shrunk)": {quantity.Vector{-5, -5, 0, 0, -1}, quantity.Vector{1, 1}, false, 0},
	} {
		if got := resourceTerm(c.free, capacity, c.size, c.cards); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
