package expiry

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Authority is the use of the authorities by which the other side is verified.
const Authority = "authority"

// Collector shows when certificates end, in seconds since 1970. Make it with New.
type Collector struct {
	use  string
	desc *prometheus.Desc

	mu sync.Mutex
	of map[string]*pki.Files // by cluster, "" for a daemon's
}

// New makes a Collector that shows nothing yet. use is what a program's own certificate is
// for: broker or agent.
func New(use string) *Collector {
	return &Collector{
		use: use, of: map[string]*pki.Files{},
		desc: prometheus.NewDesc("fleetbroker_certificate_expiry_timestamp_seconds",
			"When a certificate in use ends, in seconds since 1970, by use: broker (the daemon's, on all its ports), agent (an agent's), authority (the first to end of those by which the other side is verified).",
			[]string{"use", "cluster"}, nil),
	}
}

// Follow shows the certificates of a directory from now on; cluster is the agent's, "" for
// the daemon's.
func (c *Collector) Follow(cluster string, files *pki.Files) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[cluster] = files
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	of := maps.Clone(c.of)
	c.mu.Unlock()
	for _, cluster := range slices.Sorted(maps.Keys(of)) {
		m, _ := of[cluster].Load() // an error is why something newer is not in force
		for use, ends := range map[string]time.Time{c.use: m.Ends, Authority: m.AuthoritiesEnd} {
			ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(ends.Unix()), use, cluster)
		}
	}
}
