package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/pki/expiry"
)

// The agent's metrics, on the manager's registry.
var (
	reports = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetbroker_agent_reports_total",
		Help: "Reports by broker and result: accepted, unknown_base, stale, failed.",
	}, []string{"cluster", "broker", "result"})
	lastAccepted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleetbroker_agent_last_accepted_timestamp_seconds",
		Help: "When a broker last took a report.",
	}, []string{"cluster", "broker"})
	answers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetbroker_agent_slices_answered_total",
		Help: "Statuses written to ResourceSlices of class fleetbroker, by verdict (grant, withdraw, deny) and reason.",
	}, []string{"cluster", "verdict", "reason"})
	flavorsOffered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleetbroker_agent_flavors",
		Help: "Flavors in the newest report.",
	}, []string{"cluster"})
	certificates = expiry.New("agent")
)

func init() {
	metrics.Registry.MustRegister(version.Info("fleet-agent"), reports, lastAccepted, answers, flavorsOffered, certificates)
}
