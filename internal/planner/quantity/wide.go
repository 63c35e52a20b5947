package quantity

import (
	"cmp"
	"math"
	"math/bits"
)

// Wide is an unsigned 128-bit sum of products, for prices: exact where a float
// or a 64-bit integer would not be. It saturates.
type Wide struct{ hi, lo uint64 }

// AddProduct adds a × b × c; negative factors count as nothing.
func (w Wide) AddProduct(a, b, c int64) Wide {
	if a <= 0 || b <= 0 || c <= 0 {
		return w
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(lo, uint64(c))
	over, h1 := bits.Mul64(hi, uint64(c))
	h, carry := bits.Add64(h1, h2, 0)
	lo, c0 := bits.Add64(w.lo, l2, 0)
	h, c1 := bits.Add64(h, w.hi, c0)
	if over != 0 || carry != 0 || c1 != 0 {
		return Wide{math.MaxUint64, math.MaxUint64}
	}
	return Wide{h, lo}
}

// Div is w ÷ d, rounded half up; it saturates at the end of int64.
func (w Wide) Div(d uint64) int64 {
	if w.hi >= d {
		return math.MaxInt64 / 4
	}
	q, rem := div128(w, d)
	if rem >= d-rem {
		q++
	}
	return min(q, math.MaxInt64/4)
}

// Compare is -1, 0 or 1 as w is less than o, equal or more.
func (w Wide) Compare(o Wide) int {
	return cmp.Or(cmp.Compare(w.hi, o.hi), cmp.Compare(w.lo, o.lo))
}

// Add is w + n.
func (w Wide) Add(n uint64) Wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return Wide{w.hi + carry, lo}
}

// Quo is w ÷ d, rounded down; it saturates.
func (w Wide) Quo(d uint64) int64 {
	if w.hi >= d {
		return math.MaxInt64 / 4
	}
	q, _ := div128(w, d)
	return q
}

// div128 is w ÷ d and the rest, for w.hi < d; the quotient saturates.
func div128(w Wide, d uint64) (int64, uint64) {
	q, rem := bits.Div64(w.hi, w.lo, d)
	if q > math.MaxInt64/4 {
		return math.MaxInt64 / 4, 0
	}
	return int64(q), rem
}
