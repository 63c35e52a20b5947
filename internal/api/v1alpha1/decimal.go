package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/shopspring/decimal"
)

// Decimal is an exact decimal number: money, a rate or a ratio. Files of the daemon
// and of agents have it as a string; people may leave the quotes out, and their number
// is read from its text, never through a float. The zero value is 0.
type Decimal struct{ d decimal.Decimal }

// Zero is 0.
var Zero = Decimal{}

// plainDecimal bounds what is read: no exponents (1e999999 would cost
// gigabytes), at most 18 digits before and 18 after the point.
var plainDecimal = regexp.MustCompile(`^-?\d{1,18}(\.\d{1,18})?$`)

// ParseDecimal reads a plain decimal number such as "12.50".
func ParseDecimal(s string) (Decimal, error) {
	if !plainDecimal.MatchString(s) {
		return Decimal{}, fmt.Errorf("%q is not a decimal number: write digits and an optional point, such as \"12.50\"", s)
	}
	d, err := decimal.NewFromString(s)
	if err != nil {
		return Decimal{}, fmt.Errorf("%q is not a decimal number: %w", s, err)
	}
	return Decimal{d}, nil
}

// MustDecimal is ParseDecimal for constants; it panics on bad input.
func MustDecimal(s string) Decimal {
	d, err := ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// DecimalFromInt is n.
func DecimalFromInt(n int64) Decimal { return Decimal{decimal.NewFromInt(n)} }

// DecimalFromMicro is n millionths.
func DecimalFromMicro(n int64) Decimal { return Decimal{decimal.New(n, -6)} }

// Add is d + o.
func (d Decimal) Add(o Decimal) Decimal { return Decimal{d.d.Add(o.d)} }

// Sub is d − o.
func (d Decimal) Sub(o Decimal) Decimal { return Decimal{d.d.Sub(o.d)} }

// Mul is d × o, exact.
func (d Decimal) Mul(o Decimal) Decimal { return Decimal{d.d.Mul(o.d)} }

// MulInt is d × n, exact.
func (d Decimal) MulInt(n int64) Decimal { return Decimal{d.d.Mul(decimal.NewFromInt(n))} }

// DivInt is d ÷ n, rounded half away from zero to places digits after the
// point.
func (d Decimal) DivInt(n int64, places int32) Decimal {
	return Decimal{d.d.DivRound(decimal.NewFromInt(n), places)}
}

// Div is d ÷ o, rounded half away from zero to places digits after the point;
// 0 when o is 0.
func (d Decimal) Div(o Decimal, places int32) Decimal {
	if o.IsZero() {
		return Zero
	}
	return Decimal{d.d.DivRound(o.d, places)}
}

// Round rounds half away from zero to places digits after the point.
func (d Decimal) Round(places int32) Decimal { return Decimal{d.d.Round(places)} }

// Cmp is −1, 0 or 1 as d is less than, equal to or more than o.
func (d Decimal) Cmp(o Decimal) int { return d.d.Cmp(o.d) }

// IsZero reports whether d is 0.
func (d Decimal) IsZero() bool { return d.d.IsZero() }

// Sign is −1, 0 or 1.
func (d Decimal) Sign() int { return d.d.Sign() }

// Float is d as a float, for scores and metrics only.
func (d Decimal) Float() float64 { f, _ := d.d.Float64(); return f }

// Micro is d in millionths, rounded half away from zero, for ordering many
// prices fast. It saturates at 2⁶² of either sign, half of what int64 holds.
func (d Decimal) Micro() int64 {
	// Nearly every price: few digits, no more than six places.
	if e := d.d.Exponent(); e >= -6 && e <= 0 && d.d.NumDigits() <= 12 {
		n := d.d.CoefficientInt64()
		for ; e > -6; e-- {
			n *= 10
		}
		return n
	}
	const most = 1 << 62
	m := d.d.Shift(6).Round(0).BigInt()
	if !m.IsInt64() || m.Int64() > most || m.Int64() < -most {
		return int64(m.Sign()) * most
	}
	return m.Int64()
}

// String is the number without trailing zeros, "12.0944".
func (d Decimal) String() string { return d.d.String() }

// Text is the number with exactly two digits after the point, as people read
// prices.
func (d Decimal) Text() string { return d.d.StringFixed(2) }

// UnmarshalJSON accepts a string, or a number of plain digits, which it reads from its
// text.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	s := string(b)
	if !plainDecimal.MatchString(s) {
		s = ""
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("%s is not a plain decimal number: write its digits, such as 12.5 or \"12.50\"", b)
		}
	}
	v, err := ParseDecimal(s)
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// MarshalJSON writes a string.
func (d Decimal) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }
