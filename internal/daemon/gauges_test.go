package daemon

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A cluster that is not delivered to any more has no series: an alert about it would never end.
func TestRefusedCollector(t *testing.T) {
	of := map[string]int{"rome": 4, "oslo": 0}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(RefusedCollector(func() map[string]int { return of }))
	const head = "# HELP fleetbroker_delivery_refused What is not delivered to a cluster that this replica delivers to: files that nothing renders to, objects of no admissible form, namespaces whose remote name another has.\n# TYPE fleetbroker_delivery_refused gauge\n"
	if err := testutil.GatherAndCompare(r, strings.NewReader(head+"fleetbroker_delivery_refused{cluster=\"oslo\"} 0\nfleetbroker_delivery_refused{cluster=\"rome\"} 4\n")); err != nil {
		t.Error(err)
	}
	delete(of, "rome")
	if err := testutil.GatherAndCompare(r, strings.NewReader(head+"fleetbroker_delivery_refused{cluster=\"oslo\"} 0\n")); err != nil {
		t.Error(err)
	}
}
