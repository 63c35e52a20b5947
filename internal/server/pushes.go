package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// PushesCollector shows the budget of pushes to the fleet repo.
func PushesCollector(figures func() pushbudget.Figures) prometheus.Collector {
	return pushes(figures)
}

type pushes func() pushbudget.Figures

var (
	pushesUsed  = prometheus.NewDesc("fleetbroker_push_budget_used", "Pushes to the fleet repo within the last minute, by all replicas.", nil, nil)
	pushesLimit = prometheus.NewDesc("fleetbroker_push_budget_limit", "Pushes to the fleet repo that go a minute in the long run (spec.writeBack.pushes.perMinute); 0 is without limit.", nil, nil)
	pushesBurst = prometheus.NewDesc("fleetbroker_push_budget_burst", "Pushes to the fleet repo that may go at once (spec.writeBack.pushes.burst); 0 is without limit.", nil, nil)
	pushesTotal = prometheus.NewDesc("fleetbroker_pushes_total", "Pushes of this process to the fleet repo, refused ones too, by kind: ledger, offer, proposal, market, prune, notes, part (a further session where the server updates one ref at a time).", []string{"kind"}, nil)
	pushesWait  = prometheus.NewDesc("fleetbroker_push_wait_seconds_total", "Time in which something waited for the budget of pushes.", nil, nil)
	pushesHeld  = prometheus.NewDesc("fleetbroker_push_held_seconds", "For how long the forge asks for no more pushes (403, 429, Retry-After); 0 when it does not.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p pushes) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, ch) }

// Collect implements prometheus.Collector.
func (p pushes) Collect(ch chan<- prometheus.Metric) {
	f := p()
	for desc, v := range map[*prometheus.Desc]float64{
		pushesUsed: float64(f.Used), pushesLimit: float64(f.Limit.PerMinute), pushesBurst: float64(f.Limit.Burst), pushesHeld: f.Held.Seconds(),
	} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	ch <- prometheus.MustNewConstMetric(pushesWait, prometheus.CounterValue, f.Waited.Seconds())
	for _, kind := range pushbudget.Kinds {
		ch <- prometheus.MustNewConstMetric(pushesTotal, prometheus.CounterValue, float64(f.Kinds[kind]), kind)
	}
}
