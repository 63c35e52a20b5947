package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Resource names that have a meaning of their own. Every other name is an
// extended resource, counted in whole units.
const (
	CPU              = "cpu"               // thousandths of a core
	Memory           = "memory"            // bytes
	Pods             = "pods"              // pods
	EphemeralStorage = "ephemeral-storage" // bytes
	GPU              = "gpu"               // sellable GPU units of the flavor; its resourceName on the slice
)

// Amount is so much of one resource, in that resource's unit: thousandths of a
// core, bytes, or whole things. It is a struct so that nobody adds an amount to
// a price, or bytes to gibibytes, by accident. Arithmetic saturates instead of
// wrapping: an absurd report makes an absurd figure, never a negative one.
type Amount struct{ n int64 }

// AmountOf is n units. The unit is the resource's.
func AmountOf(n int64) Amount { return Amount{n} }

// Int64 is the bare number of units.
func (a Amount) Int64() int64 { return a.n }

// Add is a + b, saturating.
func (a Amount) Add(b Amount) Amount {
	s := a.n + b.n
	if (a.n > 0 && b.n > 0 && s < 0) || s > math.MaxInt64/2 {
		return Amount{math.MaxInt64 / 2}
	}
	return Amount{s}
}

// Sub is a − b. It may be negative: a flavor that shrank has less than it sold.
func (a Amount) Sub(b Amount) Amount { return Amount{a.n - b.n} }

// Mul is a × n, saturating.
func (a Amount) Mul(n int64) Amount {
	if a.n == 0 || n == 0 {
		return Amount{}
	}
	p := a.n * n
	if p/n != a.n || p > math.MaxInt64/2 {
		return Amount{math.MaxInt64 / 2}
	}
	return Amount{p}
}

// Cmp is −1, 0 or 1 as a is less than, equal to or more than b.
func (a Amount) Cmp(b Amount) int {
	switch {
	case a.n < b.n:
		return -1
	case a.n > b.n:
		return 1
	}
	return 0
}

// Less reports a < b.
func (a Amount) Less(b Amount) bool { return a.n < b.n }

// IsZero reports whether a is nothing.
func (a Amount) IsZero() bool { return a.n == 0 }

// Max is the larger of a and b.
func (a Amount) Max(b Amount) Amount {
	if a.n < b.n {
		return b
	}
	return a
}

// RoundUp is the smallest legal size of at least a: minimum, then steps of
// step above it. A step of nothing allows every size.
func (a Amount) RoundUp(minimum, step Amount) Amount {
	if a.n <= minimum.n {
		return minimum
	}
	if step.n <= 0 {
		return a
	}
	over := a.n - minimum.n
	return Amount{minimum.n + (over+step.n-1)/step.n*step.n}
}

// Canonical is the amount of the named resource as Kubernetes prints it:
// resource.Quantity's canonical form, which is what a GitOps writer to Liqo
// must emit (another form is rewritten by Liqo's controller, and the two then
// fight over the field).
func (a Amount) Canonical(name string) string {
	switch {
	case name == CPU:
		return resource.NewMilliQuantity(a.n, resource.DecimalSI).String()
	case inBytes(name):
		return resource.NewQuantity(a.n, resource.BinarySI).String()
	default:
		return strconv.FormatInt(a.n, 10)
	}
}

func inBytes(name string) bool {
	return name == Memory || name == EphemeralStorage || name == "storage" || strings.HasPrefix(name, "hugepages-")
}

// ErrNotWhole is returned for a fraction of something that only comes whole.
var ErrNotWhole = errors.New("must be a whole number")

// ParseAmount reads a Kubernetes quantity as an amount of the named resource.
// CPU rounds up to thousandths, memory and storage to bytes; anything else must
// be whole. Negative quantities are refused.
func ParseAmount(name, s string) (Amount, error) {
	q, err := ParseQuantity(s)
	if len(s) > maxQuantityText {
		s = s[:maxQuantityText] + "…"
	}
	if err != nil {
		return Amount{}, fmt.Errorf("%s: %q is not a quantity: %s", name, s, quantityRemedy(s))
	}
	return amountOf(name, q, func() string { return s })
}

// Bounds on the text of a quantity. resource.ParseQuantity works out the powers
// of ten that an exponent names: "1e2147483647" keeps it busy for hours.
const (
	maxQuantityText = 64
	maxExponent     = 99
)

// ParseQuantity is resource.ParseQuantity for text that others wrote: it
// refuses what is far too long, or has far too large an exponent, before
// anything is computed.
func ParseQuantity(s string) (resource.Quantity, error) {
	if len(s) > maxQuantityText {
		return resource.Quantity{}, fmt.Errorf("%.20q…: %w", s, resource.ErrFormatWrong)
	}
	if i := strings.LastIndexAny(s, "eE"); i >= 0 && i+1 < len(s) {
		// "E" and "Ei" are suffixes; only digits make an exponent.
		if n, err := strconv.Atoi(s[i+1:]); (err == nil && (n > maxExponent || n < -maxExponent)) || errors.Is(err, strconv.ErrRange) {
			return resource.Quantity{}, fmt.Errorf("%q: %w", s, resource.ErrNumeric)
		}
	}
	return resource.ParseQuantity(s)
}

// AmountOfQuantity is a Kubernetes quantity as an amount of the named resource,
// by the rules of ParseAmount.
func AmountOfQuantity(name string, q resource.Quantity) (Amount, error) {
	return amountOf(name, q, q.String)
}

// amountOf reads a quantity; text is how it was written, for a message.
func amountOf(name string, q resource.Quantity, text func() string) (Amount, error) {
	if q.Sign() < 0 {
		return Amount{}, fmt.Errorf("%s: %q is negative", name, text())
	}
	// Cmp works out the power of ten too, of quantities that others parsed.
	if q.AsApproximateFloat64() > math.MaxInt64 {
		return Amount{}, fmt.Errorf("%s: %q is too large", name, text())
	}
	if name == CPU {
		if q.Cmp(maxCores) > 0 {
			return Amount{}, fmt.Errorf("%s: %q is too large", name, text())
		}
		return Amount{q.MilliValue()}, nil
	}
	if q.Cmp(maxValue) > 0 {
		return Amount{}, fmt.Errorf("%s: %q is too large", name, text())
	}
	if !inBytes(name) && q.Cmp(*resource.NewQuantity(q.Value(), resource.DecimalSI)) != 0 {
		return Amount{}, fmt.Errorf("%s: %q: %w", name, text(), ErrNotWhole)
	}
	return Amount{q.Value()}, nil
}

// Bounds that leave room for sums.
var (
	maxCores = *resource.NewMilliQuantity(math.MaxInt64/2, resource.DecimalSI) // as sums saturate
	maxValue = *resource.NewQuantity(math.MaxInt64/2, resource.DecimalSI)
)

// quantityRemedy is what to write instead of s.
func quantityRemedy(s string) string {
	if short := strings.TrimRight(s, "bB"); short != s {
		if _, err := ParseQuantity(short); err == nil {
			return fmt.Sprintf("quantities carry no \"B\"; write %q", strings.TrimSuffix(short, "i")+"i")
		}
	}
	return `write a number with an optional unit, such as "500m", "16" or "128Gi"`
}

// Resources is an amount for each named resource. A missing name means "none"
// unless the kind says otherwise.
type Resources map[string]Amount

// UnmarshalJSON reads quantities written as strings or whole numbers. Other
// forms of number are refused, because YAML has changed what was written by
// the time they arrive here (1e3, 0x10, 1_000).
func (r *Resources) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if raw == nil {
		*r = nil
		return nil
	}
	return r.read(raw)
}

// read takes over quantities as they were written, by name.
func (r *Resources) read(raw map[string]json.RawMessage) error {
	out := make(Resources, len(raw))
	for _, name := range sortedKeys(raw) {
		s, err := quantityText(raw[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a, err := ParseAmount(name, s)
		if err != nil {
			return err
		}
		out[name] = a
	}
	*r = out
	return nil
}

// MarshalJSON writes canonical quantities as strings.
func (r Resources) MarshalJSON() ([]byte, error) { return json.Marshal(r.Canonical()) }

// Canonical is every amount in Kubernetes' canonical form.
func (r Resources) Canonical() map[string]string {
	out := make(map[string]string, len(r))
	for name, a := range r {
		out[name] = a.Canonical(name)
	}
	return out
}

// Clone is a copy that may be changed.
func (r Resources) Clone() Resources {
	out := make(Resources, len(r))
	for name, a := range r {
		out[name] = a
	}
	return out
}

// Add is r + o, name by name; neither is changed.
func (r Resources) Add(o Resources) Resources {
	out := r.Clone()
	for name, a := range o {
		out[name] = out[name].Add(a)
	}
	return out
}

// Sub is r − o, name by name, over the names of both; neither is changed.
func (r Resources) Sub(o Resources) Resources {
	out := r.Clone()
	for name, a := range o {
		out[name] = out[name].Sub(a)
	}
	return out
}

// Max is the larger of both, name by name; neither is changed.
func (r Resources) Max(o Resources) Resources {
	out := r.Clone()
	for name, a := range o {
		out[name] = out[name].Max(a)
	}
	return out
}

// Covers reports whether r has as much of everything as o, a missing amount being none.
func (r Resources) Covers(o Resources) bool {
	for name, a := range o {
		if r[name].Less(a) {
			return false
		}
	}
	return true
}

// Same is Equal, and tells nothing at all (nil) from nothing of anything.
func (r Resources) Same(o Resources) bool { return (r == nil) == (o == nil) && r.Equal(o) }

// Equal reports whether both name the same amounts, a missing one being none.
// One and the same map costs a comparison of addresses: most of what a round
// compares has not changed.
func (r Resources) Equal(o Resources) bool {
	if reflect.ValueOf(r).UnsafePointer() == reflect.ValueOf(o).UnsafePointer() {
		return true
	}
	for name, a := range r {
		if o[name] != a {
			return false
		}
	}
	for name, a := range o {
		if r[name] != a {
			return false
		}
	}
	return true
}

// Names lists the resources in order.
func (r Resources) Names() []string { return sortedKeys(r) }

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

func quantityText(raw json.RawMessage) (string, error) {
	if !isNumber(raw) { // an error takes long to make
		var s string
		if err := json.Unmarshal(raw, &s); err == nil {
			return s, nil
		}
	}
	text := string(raw)
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return "", fmt.Errorf("%s is not a quantity: write it in quotes, such as \"0.5\" or \"128Gi\"", text)
	}
	return text, nil
}
