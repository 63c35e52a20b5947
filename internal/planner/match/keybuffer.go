package match

import (
	"encoding/binary"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// keyBuffer writes values one after the other so that different sequences give
// different bytes: strings with their lengths, lists with their numbers.
type keyBuffer []byte

func (b *keyBuffer) int(list ...int64) {
	for _, n := range list {
		*b = binary.AppendVarint(*b, n)
	}
}

func (b *keyBuffer) text(list ...string) {
	for _, s := range list {
		*b = binary.AppendUvarint(*b, uint64(len(s)))
		*b = append(*b, s...)
	}
}

func (b *keyBuffer) texts(list []string) {
	b.int(int64(len(list)))
	b.text(list...)
}

func (b *keyBuffer) decimal(d *v1alpha1.Decimal) {
	if d == nil {
		b.text("")
		return
	}
	b.text(d.String())
}

func (b *keyBuffer) resources(r v1alpha1.Resources) {
	b.int(int64(len(r)))
	// The few names that nearly every request consists of need no sorting.
	known := 0
	for _, name := range [...]string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage} {
		n, ok := r[name]
		if !ok {
			b.int(-1)
			continue
		}
		known++
		b.int(n.Int64())
	}
	if known == len(r) {
		return
	}
	for _, name := range r.Names() {
		b.text(name)
		b.int(r[name].Int64())
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
