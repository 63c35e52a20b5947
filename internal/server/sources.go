package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// sourceCollector shows tenants' own repositories: as many series as a fleet may have
// sources (v1alpha1.MaxSources).
type sourceCollector struct {
	list                      func() []wire.SourceStatus
	behind, frozen, read, off *prometheus.Desc
}

// SourceCollector is the collector of what is known of sources.
func SourceCollector(list func() []wire.SourceStatus) prometheus.Collector {
	of := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("fleetbroker_source_"+name, help, []string{"source"}, nil)
	}
	return &sourceCollector{
		list:   list,
		behind: of("behind", "1 while the newest commit that was seen of a tenant's own repository is not the one that is acted on; the dashboard names both."),
		frozen: of("frozen", "1 while nothing new is taken from a tenant's own repository; the log, status and the dashboard say why."),
		read:   of("read_timestamp_seconds", "When a tenant's own repository answered last, in seconds since 1970; its age is time() less this. Absent before its first answer."),
		off:    of("ignored_paths", "Paths of the newest head below intents/ that are not taken, such as other tenants' directories; at most 20 are counted."),
	}
}

// Describe implements prometheus.Collector.
func (c *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.behind, c.frozen, c.read, c.off} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	list := c.list()
	for _, s := range list[:min(len(list), v1alpha1.MaxSources)] {
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Name)
		}
		is := map[bool]float64{true: 1}
		gauge(c.behind, is[s.Copied != s.Head])
		gauge(c.frozen, is[s.Frozen != ""])
		gauge(c.off, float64(len(s.Ignored)))
		if !s.ReadAt.IsZero() {
			gauge(c.read, float64(s.ReadAt.UnixMilli())/1000)
		}
	}
}
