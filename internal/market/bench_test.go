package market_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// full is a market of 100 providers with 100 flavors each, in 20 classes.
func full(b *testing.B) *market.Market {
	b.Helper()
	m := market.New(market.Options{Now: newClock().Now})
	for p := range 100 {
		report(b, m, provider(p), gen(1, 1), flavors(p, 0)...)
	}
	return m
}

func provider(p int) string { return fmt.Sprintf("provider-%03d", p) }

func flavors(p int, used int64) []v1alpha1.Flavor {
	out := make([]v1alpha1.Flavor, 100)
	for i := range out {
		f := gpus(provider(p), fmt.Sprintf("pool-%03d", i), 8)
		f.Spec.GPU.Model = fmt.Sprintf("nvidia-x%d", i%20)
		f.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.DecimalFromInt(int64(1 + (p*7+i)%50))}}
		f.Spec.Used = v1alpha1.Resources{"gpu": v1alpha1.AmountOf(used % 8)}
		out[i] = f
	}
	return out
}

// BenchmarkReport is one provider's report in which the usage of all its 100
// flavors changed, among 10,000.
func BenchmarkReport(b *testing.B) {
	m := full(b)
	b.ReportAllocs()
	n := uint64(1)
	for b.Loop() {
		n++
		report(b, m, provider(42), gen(1, n), flavors(42, int64(n))...)
	}
}

// BenchmarkUnchanged is a report that only says that the list still holds.
func BenchmarkUnchanged(b *testing.B) {
	m := full(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Report(provider(42), gen(1, 1), nil, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshot takes a snapshot of 10,000 flavors.
func BenchmarkSnapshot(b *testing.B) {
	m := full(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Snapshot()
	}
}

// BenchmarkTree makes the git tree anew after one provider's report.
func BenchmarkTree(b *testing.B) {
	m := full(b)
	m.Snapshot().Tree()
	n := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		n++
		report(b, m, provider(42), gen(1, n), flavors(42, int64(n))...)
		m.Snapshot().Tree()
	}
}

// BenchmarkHeap reports what 10,000 flavors keep in memory, and how much of it
// for each.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		before := heap()
		m := full(b)
		m.Snapshot().Offers()
		held := heap() - before
		b.ReportMetric(float64(held)/(1<<20), "MiB")
		b.ReportMetric(float64(held)/10000, "B/flavor")
		runtime.KeepAlive(m)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
