package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// trustCollector shows what signatures are held to.
type trustCollector struct {
	trust                      func() wire.Trust
	unsigned, sequence, alarms *prometheus.Desc
}

// TrustCollector is the collector of a daemon's trust.
func TrustCollector(trust func() wire.Trust) prometheus.Collector {
	return &trustCollector{
		trust:    trust,
		unsigned: prometheus.NewDesc("fleetbroker_unsigned", "1 where no signature is asked for; root is the digest of the trust root's keys.", []string{"root"}, nil),
		sequence: prometheus.NewDesc("fleetbroker_ledger_sequence", "Number of the ledger commit that was accepted last. It never goes back.", nil, nil),
		alarms:   prometheus.NewDesc("fleetbroker_trust_alarms", "What contradicted the trust root since the start, such as accepted refs that others wrote; the log says which.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *trustCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.unsigned
	ch <- c.sequence
	ch <- c.alarms
}

// Collect implements prometheus.Collector.
func (c *trustCollector) Collect(ch chan<- prometheus.Metric) {
	t := c.trust()
	unsigned := 0.0
	if t.Unsigned {
		unsigned = 1
	}
	ch <- prometheus.MustNewConstMetric(c.unsigned, prometheus.GaugeValue, unsigned, t.Keys)
	ch <- prometheus.MustNewConstMetric(c.sequence, prometheus.GaugeValue, float64(t.Sequence))
	ch <- prometheus.MustNewConstMetric(c.alarms, prometheus.GaugeValue, float64(len(t.Alarms)))
}
