package quantity

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// RowLength is for how many resources most Vectors have room.
const RowLength = Extended + 1

// Vector is an amount for each numbered resource, in that resource's unit. Names
// past its end are absent: nothing.
type Vector []int64

// At is the amount of a numbered resource.
func (v Vector) At(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// Set returns v with v[i] = n, grown if need be.
func (v Vector) Set(i int, n int64) Vector {
	for len(v) <= i {
		v = append(v, 0)
	}
	v[i] = n
	return v
}

// Add adds o into v in place, grown if need be, and returns it.
func (v Vector) Add(o Vector) Vector {
	for i, n := range o {
		if n != 0 {
			v = v.Set(i, v1alpha1.AmountOf(v.At(i)).Add(v1alpha1.AmountOf(n)).Int64())
		}
	}
	return v
}

// Sub subtracts o from v in place, grown if need be, and returns it.
func (v Vector) Sub(o Vector) Vector {
	for i, n := range o {
		if n != 0 {
			v = v.Set(i, v.At(i)-n)
		}
	}
	return v
}

// Max is the larger of both, resource by resource, as a new Vector.
func (v Vector) Max(o Vector) Vector {
	out := make(Vector, max(len(v), len(o)))
	for i := range out {
		out[i] = max(v.At(i), o.At(i))
	}
	return out
}

// Deficit is the first resource of which there is less than nothing, -1 for
// none.
func (v Vector) Deficit() int {
	for i, n := range v {
		if n < 0 {
			return i
		}
	}
	return -1
}

// Holds reports o ≤ v and that there is less than nothing of no resource; it may report false of
// an o with more resources, which then has to be looked at resource by resource.
func (v Vector) Holds(o Vector) bool {
	if len(o) > len(v) {
		return false
	}
	for i, n := range o {
		if v[i] < n || v[i] < 0 {
			return false
		}
	}
	return v[len(o):].Deficit() < 0
}

// Times is how often o fits into v, n times at the most.
func (v Vector) Times(o Vector, n int) int {
	for i, one := range o {
		if one > 0 {
			n = int(min(int64(n), max(v.At(i), 0)/one))
		}
	}
	return n
}

// Negative is -v, as a new Vector.
func (v Vector) Negative() Vector {
	out := v.Clone()
	for i := range out {
		out[i] = -out[i]
	}
	return out
}

// Clone is a Vector of its own with the same amounts.
func (v Vector) Clone() Vector { return append(Vector(nil), v...) }

// Equal reports v = o for every resource.
func (v Vector) Equal(o Vector) bool {
	for i := range max(len(v), len(o)) {
		if v.At(i) != o.At(i) {
			return false
		}
	}
	return true
}

// Relieves reports whether v has some of a resource that is lacking.
func (v Vector) Relieves(lack Vector) bool {
	for i, n := range lack {
		if n > 0 && v.At(i) > 0 {
			return true
		}
	}
	return false
}

// Within reports v ≤ o for every resource.
func (v Vector) Within(o Vector) bool {
	for i, n := range v {
		if n > o.At(i) {
			return false
		}
	}
	return true
}
