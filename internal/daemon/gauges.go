package daemon

import "github.com/prometheus/client_golang/prometheus"

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
