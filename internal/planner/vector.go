package planner

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A round compares the amounts of thousands of offers with those of thousands
// of requests. It therefore numbers the names of resources once and holds
// amounts in slices.

// Numbers of the resources that every round knows; extended resources follow.
const (
	rCPU = iota
	rMemory
	rPods
	rStorage
	rGPU
	rExtended
)

// names numbers the names of resources.
type names struct {
	id     map[string]int
	list   []string
	prefix string
	// behind are the names behind the prefix, made once.
	behind []string
}

// newNames numbers the resources that every round knows; prefix is what Prefixed
// puts before a name.
func newNames(prefix string) *names {
	n := &names{id: map[string]int{}, prefix: prefix}
	for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage, v1alpha1.GPU} {
		n.of(name)
	}
	return n
}

// of is the number of a name, a new one if need be.
func (n *names) of(name string) int {
	i, ok := n.id[name]
	if !ok {
		i = len(n.list)
		n.id[name] = i
		n.list, n.behind = append(n.list, name), append(n.behind, n.prefix+name)
	}
	return i
}

// name is the name of a number.
func (n *names) name(i int) string { return n.list[i] }

// prefixed is the name of a number behind the prefix.
func (n *names) prefixed(i int) string { return n.behind[i] }

// rowLength is for how many resources most vecs have room.
const rowLength = rExtended + 1

// vec is an amount for each numbered resource, in that resource's unit. Names
// past its end are absent: nothing.
type vec []int64

// at is the amount of a numbered resource.
func (v vec) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// set returns v with v[i] = n, grown if need be.
func (v vec) set(i int, n int64) vec {
	for len(v) <= i {
		v = append(v, 0)
	}
	v[i] = n
	return v
}

// add adds o into v in place, grown if need be, and returns it.
func (v vec) add(o vec) vec {
	for i, n := range o {
		if n != 0 {
			v = v.set(i, v1alpha1.AmountOf(v.at(i)).Add(v1alpha1.AmountOf(n)).Int64())
		}
	}
	return v
}

// sub subtracts o from v in place, grown if need be, and returns it.
func (v vec) sub(o vec) vec {
	for i, n := range o {
		if n != 0 {
			v = v.set(i, v.at(i)-n)
		}
	}
	return v
}

// max is the larger of both, resource by resource, as a new vec.
func (v vec) max(o vec) vec {
	out := make(vec, max(len(v), len(o)))
	for i := range out {
		out[i] = max(v.at(i), o.at(i))
	}
	return out
}

// deficit is the first resource of which there is less than nothing, -1 for
// none.
func (v vec) deficit() int {
	for i, n := range v {
		if n < 0 {
			return i
		}
	}
	return -1
}

// clone is a vec of its own with the same amounts.
func (v vec) clone() vec { return append(vec(nil), v...) }

// equal reports v = o for every resource.
func (v vec) equal(o vec) bool {
	for i := range max(len(v), len(o)) {
		if v.at(i) != o.at(i) {
			return false
		}
	}
	return true
}

// within reports v ≤ o for every resource.
func (v vec) within(o vec) bool {
	for i, n := range v {
		if n > o.at(i) {
			return false
		}
	}
	return true
}

// vecOf numbers the resources of r.
func (n *names) vecOf(r v1alpha1.Resources) vec { return n.vecIn(make(vec, 0, rowLength), r) }

// vecIn is vecOf in the place of another vec, as far as that has room.
func (n *names) vecIn(v vec, r v1alpha1.Resources) vec {
	v = append(v[:0], make(vec, rExtended)...)
	for name, a := range r {
		v = v.set(n.of(name), a.Int64())
	}
	return v
}

// resources are v's named amounts, those of nothing left out.
func (n *names) resources(v vec) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for i, a := range v {
		if a != 0 {
			out[n.list[i]] = v1alpha1.AmountOf(a)
		}
	}
	return out
}

// wide is an unsigned 128-bit sum of products, for prices: exact where a float
// or a 64-bit integer would not be. It saturates.
type wide struct{ hi, lo uint64 }

// addProduct adds a × b × c; negative factors count as nothing.
func (w wide) addProduct(a, b, c int64) wide {
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
		return wide{math.MaxUint64, math.MaxUint64}
	}
	return wide{h, lo}
}

// div is w ÷ d, rounded half up; it saturates at the end of int64.
func (w wide) div(d uint64) int64 {
	if w.hi >= d {
		return math.MaxInt64 / 4
	}
	q, rem := div128(w, d)
	if rem >= d-rem {
		q++
	}
	return min(q, math.MaxInt64/4)
}

// compare is -1, 0 or 1 as w is less than o, equal or more.
func (w wide) compare(o wide) int { return cmp.Or(cmp.Compare(w.hi, o.hi), cmp.Compare(w.lo, o.lo)) }

// add is w + n.
func (w wide) add(n uint64) wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return wide{w.hi + carry, lo}
}

// quo is w ÷ d, rounded down; it saturates.
func (w wide) quo(d uint64) int64 {
	if w.hi >= d {
		return math.MaxInt64 / 4
	}
	q, _ := div128(w, d)
	return q
}

// div128 is w ÷ d and the rest, for w.hi < d; the quotient saturates.
func div128(w wide, d uint64) (int64, uint64) {
	q, rem := bits.Div64(w.hi, w.lo, d)
	if q > math.MaxInt64/4 {
		return math.MaxInt64 / 4, 0
	}
	return int64(q), rem
}
