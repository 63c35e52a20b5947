package quantity

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// Numbers of the resources that every round knows; extended resources follow.
const (
	CPU = iota
	Memory
	Pods
	Storage
	GPU
	Extended
)

// Names numbers the names of resources.
type Names struct {
	id     map[string]int
	list   []string
	prefix string
	// behind are the names behind the prefix, made once.
	behind []string
}

// NewNames numbers the resources that every round knows; prefix is what Prefixed
// puts before a name.
func NewNames(prefix string) *Names {
	n := &Names{id: map[string]int{}, prefix: prefix}
	for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage, v1alpha1.GPU} {
		n.Of(name)
	}
	return n
}

// Of is the number of a name, a new one if need be.
func (n *Names) Of(name string) int {
	i, ok := n.id[name]
	if !ok {
		i = len(n.list)
		n.id[name] = i
		n.list, n.behind = append(n.list, name), append(n.behind, n.prefix+name)
	}
	return i
}

// Name is the name of a number.
func (n *Names) Name(i int) string { return n.list[i] }

// Prefixed is the name of a number behind the prefix.
func (n *Names) Prefixed(i int) string { return n.behind[i] }

// VectorOf numbers the resources of r.
func (n *Names) VectorOf(r v1alpha1.Resources) Vector {
	return n.VectorIn(make(Vector, 0, RowLength), r)
}

// VectorIn is VectorOf in the place of another Vector, as far as that has room.
func (n *Names) VectorIn(v Vector, r v1alpha1.Resources) Vector {
	v = append(v[:0], make(Vector, Extended)...)
	for name, a := range r {
		v = v.Set(n.Of(name), a.Int64())
	}
	return v
}

// Resources are v's named amounts, those of nothing left out.
func (n *Names) Resources(v Vector) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for i, a := range v {
		if a != 0 {
			out[n.list[i]] = v1alpha1.AmountOf(a)
		}
	}
	return out
}
