package ledger_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// BenchmarkColdRead reads a fleet of 10 tenants × 1,000 intents with 1,000
// contracts; ten times that is the size that the issue names.
func BenchmarkColdRead(b *testing.B) {
	t := build(big(b, 10, 1000, 10))
	b.ReportAllocs()
	for b.Loop() {
		l, problems, err := ledger.Read(context.Background(), t, nil)
		if err != nil || len(problems) > 0 || l.Len() != 1000 {
			b.Fatal(l.Len(), problems, err)
		}
	}
}

// BenchmarkHeap reports what a ledger keeps in memory.
func BenchmarkHeap(b *testing.B) {
	t := build(big(b, 10, 1000, 10))
	for b.Loop() {
		before := heap()
		l, _, err := ledger.Read(context.Background(), t, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		runtime.KeepAlive(l)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkRereadOneFile reads again after one contract of one intent changed.
func BenchmarkRereadOneFile(b *testing.B) {
	base := big(b, 100, 1000, 10)
	prev, _, err := ledger.Read(context.Background(), build(base), nil)
	if err != nil {
		b.Fatal(err)
	}
	c := *contract("team-042", "job-00010", 0, 0)
	c.Status.Phase = v1alpha1.PhaseDegraded
	t := build(files(b, base, ledger.Changes{Contracts: []model.Change{{After: &c}}}))
	b.ResetTimer()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ledger.Read(context.Background(), t, prev); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWith changes one contract of 10,000.
func BenchmarkWith(b *testing.B) {
	prev, _, err := ledger.Read(context.Background(), build(big(b, 100, 100, 1)), nil)
	if err != nil {
		b.Fatal(err)
	}
	before := prev.Contract(contract("team-042", "job-00010", 0, 0).Metadata.Name)
	after := *before
	after.Status.Phase = v1alpha1.PhaseReleasing
	b.ReportAllocs()
	for b.Loop() {
		prev.With(ledger.Changes{Contracts: []model.Change{{Before: before, After: &after}}})
	}
}
