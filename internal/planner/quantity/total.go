package quantity

import "math/bits"

// most is the largest amount of money that is told; Decimal.Micro saturates there too.
const most = Micro(1) << 62

// Total is a sum of money of any number of amounts: exact, so that what was added can
// be taken off again, where a Micro would wrap. The zero value is nothing.
type Total struct {
	hi int64
	lo uint64
}

// TotalOf is m.
func TotalOf(m Micro) Total { return Total{}.Plus(m) }

// Plus is t + m.
func (t Total) Plus(m Micro) Total {
	lo, carry := bits.Add64(t.lo, uint64(m), 0)          //nolint:gosec // two's complement
	return Total{t.hi + int64(m>>63) + int64(carry), lo} //nolint:gosec // a carry is 0 or 1
}

// Minus is t − m.
func (t Total) Minus(m Micro) Total {
	lo, borrow := bits.Sub64(t.lo, uint64(m), 0)          //nolint:gosec // two's complement
	return Total{t.hi - int64(m>>63) - int64(borrow), lo} //nolint:gosec // a borrow is 0 or 1
}

// Micro is t as far as it can be told: it saturates at 2⁶² millionths of either sign,
// so that a limit less two of them is still in range.
func (t Total) Micro() Micro {
	m := Micro(t.lo) //nolint:gosec // two's complement
	switch {
	case t.hi > 0 || t.hi == 0 && (m < 0 || m > most):
		return most
	case t.hi < -1 || t.hi == -1 && (m >= 0 || m < -most):
		return -most
	}
	return m
}

// Plus is m + n, saturating as Total does.
func (m Micro) Plus(n Micro) Micro { return TotalOf(m).Plus(n).Micro() }

// Minus is m − n, saturating as Total does.
func (m Micro) Minus(n Micro) Micro { return TotalOf(m).Minus(n).Micro() }
