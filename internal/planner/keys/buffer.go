package keys

import (
	"encoding/binary"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Buffer writes values one after the other so that different sequences give
// different bytes: strings with their lengths, lists with their numbers.
type Buffer []byte

// Int appends numbers.
func (b *Buffer) Int(list ...int64) {
	for _, n := range list {
		*b = binary.AppendVarint(*b, n)
	}
}

// Text appends strings.
func (b *Buffer) Text(list ...string) {
	for _, s := range list {
		*b = binary.AppendUvarint(*b, uint64(len(s)))
		*b = append(*b, s...)
	}
}

// Texts appends a list.
func (b *Buffer) Texts(list []string) {
	b.Int(int64(len(list)))
	b.Text(list...)
}

// Decimal appends a number, or that there is none.
func (b *Buffer) Decimal(d *v1alpha1.Decimal) {
	if d == nil {
		b.Text("")
		return
	}
	b.Text(d.String())
}

// Resources appends amounts by name.
func (b *Buffer) Resources(r v1alpha1.Resources) {
	b.Int(int64(len(r)))
	// The few names that nearly every request consists of need no sorting.
	known := 0
	for _, name := range [...]string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage} {
		n, ok := r[name]
		if !ok {
			b.Int(-1)
			continue
		}
		known++
		b.Int(n.Int64())
	}
	if known == len(r) {
		return
	}
	for _, name := range r.Names() {
		b.Text(name)
		b.Int(r[name].Int64())
	}
}
