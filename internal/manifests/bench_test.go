package manifests

import (
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// many are n contracts of 100 tenants, each with a namespace of its own.
func many(n int) []*v1alpha1.Contract {
	out := make([]*v1alpha1.Contract, n)
	for i := range out {
		tenant := fmt.Sprintf("tenant-%02d", i%100)
		out[i] = contract(tenant, fmt.Sprintf("intent-%05d", i), "aaaa", offload(v1alpha1.OffloadNamespace{Name: tenant}))
	}
	return out
}

func BenchmarkAll10000(b *testing.B) {
	ix, clusters := NewIndex(many(10000)), fleet()
	for b.Loop() {
		if _, err := All(ix, clusters); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndex10000(b *testing.B) {
	contracts := many(10000)
	for b.Loop() {
		NewIndex(contracts)
	}
}

// A batch of 10 contracts among 10,000 of one tenant, all in one namespace: its
// file names every intent.
func BenchmarkUpdate10OneNamespace(b *testing.B) {
	contracts := make([]*v1alpha1.Contract, 10000)
	for i := range contracts {
		contracts[i] = contract("vision", fmt.Sprintf("intent-%05d", i), "aaaa", offload(v1alpha1.OffloadNamespace{Name: "vision"}))
	}
	ix, clusters := NewIndex(contracts), fleet()
	changes := make([]model.Change, 10)
	for i := range changes {
		changes[i] = model.Change{Before: contracts[i], After: contracts[i]}
	}
	for b.Loop() {
		if _, err := Update(ix.With(changes), clusters, changes); err != nil {
			b.Fatal(err)
		}
	}
}

// A batch of 10 contracts among 10,000.
func BenchmarkUpdate10(b *testing.B) {
	ix, clusters := NewIndex(many(10000)), fleet()
	changes := make([]model.Change, 10)
	for i, c := range many(10) {
		changes[i] = model.Change{Before: c, After: c}
	}
	for b.Loop() {
		next := ix.With(changes)
		if _, err := Update(next, clusters, changes); err != nil {
			b.Fatal(err)
		}
	}
}
