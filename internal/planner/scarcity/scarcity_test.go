package scarcity

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// The tails of Poisson's distribution, next to its figures.
func TestTails(t *testing.T) {
	for mean, want := range map[float64][]float64{
		0.5: {0.3935, 0.0902, 0.0144},
		2:   {0.8647, 0.5940, 0.3233, 0.1429},
	} {
		got := tails(mean)
		for i, p := range want {
			if math.Abs(got[i]-p) > 5e-5 {
				t.Errorf("P(N > %d) for a mean of %g is %.4f, want %.4f", i, mean, got[i], p)
			}
		}
	}
	for _, mean := range []float64{1e-9, certain} {
		last := 1.0
		for i, p := range tails(mean) {
			if p > last || p < 0 || math.IsNaN(p) {
				t.Fatalf("P(N > %d) for a mean of %g is %g after %g", i, mean, p, last)
			}
			last = p
		}
	}
}

// What it costs is bounded, however many offers and kinds there are.
func TestKinds(t *testing.T) {
	for offers, want := range map[int]int{0: 64, 25: 64, 10_000: 6, 1_000_000: 1} {
		if got := Kinds(offers); got != want {
			t.Errorf("%d kinds among %d offers, want %d", got, offers, want)
		}
	}
}

// With more places than are asked for, one more is worth nothing; many count in proportion.
func TestWorth(t *testing.T) {
	k := &kind{scale: 10, lost: []float64{0, 5, 8, 9}}
	for n, want := range map[int]float64{0: 0, 9: 0, 10: 5, 29: 8, 30: 9, 1000: 9} {
		if got := k.worth(n); got != want {
			t.Errorf("the first %d places are worth %g, want %g", n, got, want)
		}
	}
}

// What may be paid in addition is the exact product, rounded down, up to the highest price and
// the highest premium.
func TestPaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price, premium := rapid.Int64Range(0, 2*most).Draw(t, "price"), rapid.Int64Range(0, 1_000_000).Draw(t, "premium")
		want := new(big.Int).Mul(big.NewInt(min(price, most)), big.NewInt(premium))
		want.Quo(want, big.NewInt(1000))
		p := &Prices{premium: quantity.Micro(premium)}
		if got := p.paid(quantity.Micro(price)); int64(got) != want.Int64() || !want.IsInt64() {
			t.Fatalf("%d micros at %d thousandths: got %d, want %s", price, premium, got, want)
		}
	})
}
