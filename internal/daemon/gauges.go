package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// LeaderCollectors are gauges of who decides: whether this replica does, and whether the
// Lease of that is refused to it. of gives the election, nil where nobody else may decide.
func LeaderCollectors(of func() *Election) []prometheus.Collector {
	gauge := func(name, help string, is func(*Election) bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if is(of()) {
				return 1
			}
			return 0
		})
	}
	return []prometheus.Collector{
		gauge("fleetbroker_leader", "1 while this replica decides and writes, 0 while it stands by.", (*Election).Leads),
		gauge("fleetbroker_leader_lease_refused", "1 while the Lease of who decides is refused to this replica; /readyz has the reason.", func(e *Election) bool { return e.Refused() != nil }),
	}
}

// RemoteCollector is for how long the fleet repo has not answered, as out says.
func RemoteCollector(out func() time.Duration) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fleetbroker_remote_unanswered_seconds", Help: "For how long the fleet repo's server has not answered although it was asked; 0 while it answers.",
	}, func() float64 { return out().Seconds() })
}

// StoreCollectors are figures of the market's store: writes that it refuses, and objects that
// another account wrote. of gives what replicas share, nil where there is nothing yet.
func StoreCollectors(of func() *Shared) []prometheus.Collector {
	figure := func(is func(store.Status) int) func() float64 {
		return func() float64 {
			if s := of(); s != nil {
				return float64(is(s.Store.Status()))
			}
			return 0
		}
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "fleetbroker_market_store_refused", Help: "Objects of the market's shared store whose last write was refused (forbidden, quota, full, invalid); /readyz has the reasons.",
		}, figure(func(s store.Status) int { return len(s.Refused) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "fleetbroker_market_store_foreign_writes_total", Help: "Writes of objects of the market's shared store by another account than the daemon's that this replica saw and ignored; the log names object and manager.",
		}, figure(func(s store.Status) int { return s.Foreign })),
	}
}

// RefusedCollector is how much is not delivered to each cluster that is delivered to from
// here, as of tells at each scrape: a cluster that another replica serves, or that has left
// the fleet, leaves no series behind.
func RefusedCollector(of func() map[string]int) prometheus.Collector { return refused(of) }

type refused func() map[string]int

var refusedDesc = prometheus.NewDesc("fleetbroker_delivery_refused", "What is not delivered to a cluster that this replica delivers to: files that nothing renders to, objects of no admissible form, namespaces whose remote name another has.", []string{"cluster"}, nil)

// Describe implements prometheus.Collector.
func (r refused) Describe(ch chan<- *prometheus.Desc) { ch <- refusedDesc }

// Collect implements prometheus.Collector.
func (r refused) Collect(ch chan<- prometheus.Metric) {
	for cluster, n := range r() {
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.GaugeValue, float64(n), cluster)
	}
}
