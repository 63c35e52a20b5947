package server

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// levels is a gauge whose series are all replaced at once: a tenant that is gone
// leaves none behind.
type levels struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	list []level
}

type level struct {
	labels []string
	value  float64
}

func newLevels(name, help string, labels ...string) *levels {
	return &levels{desc: prometheus.NewDesc("fleetbroker_"+name, help, labels, nil)}
}

// set replaces all series. Of two with the same labels the last counts, because
// a scrape with both would fail.
func (l *levels) set(list []level) {
	var out []level
	for i, one := range list {
		if !slices.ContainsFunc(list[i+1:], func(o level) bool { return slices.Equal(o.labels, one.labels) }) {
			out = append(out, one)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = out
}

// Describe implements prometheus.Collector.
func (l *levels) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect implements prometheus.Collector.
func (l *levels) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.list {
		ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, one.value, one.labels...)
	}
}

// Condition is something about a provider that people should look at.
type Condition struct{ Provider, Type string }

// SetConditions replaces the conditions of providers.
func (m *Metrics) SetConditions(list []Condition) {
	out := make([]level, 0, len(list))
	for _, c := range list {
		out = append(out, level{[]string{c.Provider, c.Type}, 1})
	}
	m.conditions.set(out)
}

// SetExpiring replaces how many contracts of each tenant end soon.
func (m *Metrics) SetExpiring(byTenant map[string]int) {
	out := make([]level, 0, len(byTenant))
	for tenant, n := range byTenant {
		out = append(out, level{[]string{tenant}, float64(n)})
	}
	m.expiring.set(out)
}
