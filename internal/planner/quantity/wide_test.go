package quantity

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Sums are exact, and saturate.
func TestWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := rapid.Int64Range(0, 1<<40).Draw(t, "a"), rapid.Int64Range(0, 1<<40).Draw(t, "b"), rapid.Int64Range(0, 1<<40).Draw(t, "c")
		d := rapid.Uint64Range(1, 1<<62).Draw(t, "d")
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Mul(want, big.NewInt(c))
		want.Quo(want, new(big.Int).SetUint64(d))
		limit := big.NewInt(math.MaxInt64 / 4)
		if want.Cmp(limit) > 0 {
			want = limit
		}
		if got := (Wide{}).AddProduct(a, b, c).Quo(d); got != want.Int64() {
			t.Fatalf("%d × %d × %d ÷ %d = %d, want %s", a, b, c, d, got, want)
		}
	})
	full := Wide{}.AddProduct(math.MaxInt64, math.MaxInt64, math.MaxInt64)
	if full.Div(1) != math.MaxInt64/4 {
		t.Fatal("does not saturate")
	}
}
