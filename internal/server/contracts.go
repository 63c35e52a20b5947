package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

var contractsDesc = prometheus.NewDesc("fleetbroker_contracts",
	"Held contracts as they are seen now, by phase and the code of its reason.", []string{"phase", "reason"}, nil)

// ContractsCollector counts held contracts at each scrape: what a pod takes of
// promised capacity shows here before it is on the ledger.
type ContractsCollector struct {
	// States of all held contracts.
	States func() []wire.ContractState
}

// Describe implements prometheus.Collector.
func (c ContractsCollector) Describe(ch chan<- *prometheus.Desc) { ch <- contractsDesc }

// Collect implements prometheus.Collector.
func (c ContractsCollector) Collect(ch chan<- prometheus.Metric) {
	counts := map[[2]string]int{}
	for _, s := range c.States() {
		counts[[2]string{string(s.Phase), s.Reason}]++
	}
	for labels, n := range counts {
		ch <- prometheus.MustNewConstMetric(contractsDesc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}
