package quantity

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Totals are what big integers come to, and saturate.
func TestTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum, want, list := Total{}, new(big.Int), []Micro{}
		for range rapid.IntRange(0, 20).Draw(t, "amounts") {
			m := Micro(rapid.Int64().Draw(t, "amount"))
			if rapid.Bool().Draw(t, "taken off") {
				sum = sum.Minus(m)
				want.Sub(want, big.NewInt(int64(m)))
				continue
			}
			sum = sum.Plus(m)
			want.Add(want, big.NewInt(int64(m)))
			list = append(list, m)
		}
		limit := big.NewInt(int64(most))
		told := new(big.Int).Set(want)
		if told.Cmp(limit) > 0 {
			told = limit
		} else if told.CmpAbs(limit) > 0 {
			told = new(big.Int).Neg(limit)
		}
		if got := sum.Micro(); told.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("got %d, want %s", got, told)
		}
		back := sum
		for _, m := range list {
			back = back.Minus(m)
		}
		for _, m := range list {
			back = back.Plus(m)
		}
		if back != sum {
			t.Fatalf("%v, then %v", sum, back)
		}
	})
}
