// Package exemplar has histograms show a trace for what they observe (OpenMetrics), so that
// one leads from a graph to what was slow. Whoever observes calls it; without a trace it is
// an observation like any other, and allocates nothing.
package exemplar

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Label of the trace's id, as Grafana looks for it.
const Label = "trace_id"

// Observe observes a duration in seconds, with the id of its trace; "" is none.
func Observe(h prometheus.Observer, d time.Duration, trace string) {
	if trace != "" {
		if e, ok := h.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(d.Seconds(), prometheus.Labels{Label: trace})
			return
		}
	}
	h.Observe(d.Seconds())
}
