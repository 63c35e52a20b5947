package market

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Column is the offers of one class as columns, cheapest first: what a search
// touches lies together. Index i of every slice is one offer.
type Column struct {
	// Class of all offers here.
	Class Class
	// Offers by price, then by provider and name; unpriced ones last.
	Offers []*Offer
	// Micro is each offer's price of a unit and hour, in millionths of the fleet's currency.
	Micro []int64
	// Units is each offer's GPU units that its provider does not use itself, before contracts (milli-CPU in the class without GPUs).
	Units []int64
}

// FirstFit is the index of the cheapest offer from index from on that has so
// many units and can be bought, −1 when there is none.
func (c *Column) FirstFit(from int, units int64) int {
	for i := max(from, 0); i < len(c.Units); i++ {
		if c.Units[i] >= units && c.Offers[i].State == Fresh {
			return i
		}
	}
	return -1
}

// lazyClass is a class's column, made when somebody asks.
type lazyClass struct{ column func() *Column }

// newLazyClass makes a class's column from the index by price. The transaction
// keeps the tables as they are.
func newLazyClass(txn *memdb.Txn, views []*view, c Class) *lazyClass {
	return &lazyClass{sync.OnceValue(func() *Column {
		col := &Column{Class: c}
		for _, row := range byClass(txn, c) {
			o := find(views, row.provider).offer(row.name)
			col.Offers = append(col.Offers, o)
			col.Micro = append(col.Micro, o.Micro)
			col.Units = append(col.Units, units(o.Flavor))
		}
		return col
	})}
}

func units(f *v1alpha1.Flavor) int64 {
	name := v1alpha1.GPU
	if f.Spec.GPU == nil {
		name = v1alpha1.CPU
	}
	return f.Spec.Capacity[name].Sub(f.Spec.Used[name]).Int64()
}

// ByClass is the offers of a class as columns; nil when there are none.
func (s *Snapshot) ByClass(c Class) *Column {
	l := s.classes[c]
	if l == nil {
		return nil
	}
	if col := l.column(); len(col.Offers) > 0 {
		return col
	}
	return nil
}

// Classes that have offers, by vendor, model and memory.
func (s *Snapshot) Classes() []Class {
	out := slices.Collect(maps.Keys(s.classes))
	out = slices.DeleteFunc(out, func(c Class) bool { return s.ByClass(c) == nil })
	slices.SortFunc(out, func(a, b Class) int {
		return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Model, b.Model), a.Memory.Cmp(b.Memory))
	})
	return out
}
