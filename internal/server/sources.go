package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// sourceCollector shows tenants' own repositories: as many series as a fleet may have
// sources (v1alpha1.MaxSources).
type sourceCollector struct {
	list                    func() []wire.SourceStatus
	info, frozen, read, off *prometheus.Desc
}

// SourceCollector is the collector of what is known of sources.
func SourceCollector(list func() []wire.SourceStatus) prometheus.Collector {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("fleetbroker_source_"+name, help, append([]string{"source"}, labels...), nil)
	}
	return &sourceCollector{
		list:   list,
		info:   of("info", "1 for each tenant's own repository, with the commit that is acted on and the newest that was seen.", "copied", "head"),
		frozen: of("frozen", "1 while nothing new is taken from a tenant's own repository; the log, status and the dashboard say why."),
		read:   of("read_timestamp_seconds", "When a tenant's own repository answered last, in seconds since 1970; its age is time() less this. Absent before its first answer."),
		off:    of("ignored_paths", "Paths of the newest head below intents/ that are not taken, such as other tenants' directories; at most 20 are counted."),
	}
}

// Describe implements prometheus.Collector.
func (c *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.frozen, c.read, c.off} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	list := c.list()
	for _, s := range list[:min(len(list), v1alpha1.MaxSources)] {
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.Name}, labels...)...)
		}
		frozen := 0.0
		if s.Frozen != "" {
			frozen = 1
		}
		gauge(c.info, 1, s.Copied, s.Head)
		gauge(c.frozen, frozen)
		gauge(c.off, float64(len(s.Ignored)))
		if !s.ReadAt.IsZero() {
			gauge(c.read, float64(s.ReadAt.UnixMilli())/1000)
		}
	}
}
