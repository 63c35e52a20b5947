package tariff

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
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
