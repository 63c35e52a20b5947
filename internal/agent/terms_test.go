package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// In which sizes and at which hours' prices a flavor is sold is read from its nodes, one of
// which is enough, and the market takes the report.
func TestTermsOfAFlavor(t *testing.T) {
	rate := []nodeOption{annotated("cost.fluidos.eu/hourly-rate", "16"), annotated("cost.fluidos.eu/currency", "EUR")}
	for name, c := range map[string]struct {
		a, b               []nodeOption
		min, step, windows int64
		problem            string
	}{
		"nothing":         {a: rate, b: rate},
		"one node":        {a: append([]nodeOption{annotated(notePartition, "min gpu=2 cpu=16; step gpu=2"), annotated(noteWindows, "Sat,Sun 00:00-24:00 gpu=0.80")}, rate...), b: rate, min: 2, step: 2, windows: 1},
		"the same twice":  {a: []nodeOption{annotated(notePartition, "min gpu=4")}, b: []nodeOption{annotated(notePartition, "min gpu=4")}, min: 4},
		"two that differ": {a: []nodeOption{annotated(notePartition, "min gpu=4")}, b: []nodeOption{annotated(notePartition, "min gpu=2")}, min: 4, problem: "node b: annotation fleetbroker.io/partition is ignored: other nodes of the flavor say \"min gpu=4\""},
		"a bad one":       {a: []nodeOption{annotated(notePartition, "gpu: 2")}, problem: "node a: annotation fleetbroker.io/partition is ignored"},
		"bad, then good":  {a: []nodeOption{annotated(notePartition, "gpu: 2")}, b: []nodeOption{annotated(notePartition, "step gpu=2")}, step: 2, problem: "node a: annotation"},
		"without a price": {a: []nodeOption{annotated(noteWindows, "00:00-24:00 gpu=0.80")}, problem: "the flavor has no price of its own"},
		"bad windows":     {a: append([]nodeOption{annotated(noteWindows, "weekends gpu=0.80")}, rate...), b: rate, problem: "neither days, hours"},
	} {
		s := State{Cluster: "paris"}
		s.Nodes = append(s.Nodes, node("a", big, append([]nodeOption{pool("p"), h100}, c.a...)...), node("b", big, append([]nodeOption{pool("p"), h100}, c.b...)...))
		flavors, _, problems := Collect(s, Memory{})
		if text := strings.Join(problems, "\n"); (text != "") != (c.problem != "") || !strings.Contains(text, c.problem) {
			t.Errorf("%s: problems %q, want %q", name, text, c.problem)
		}
		f := flavors[0].Spec
		var min, step, windows int64
		if f.Partition != nil {
			min, step = f.Partition.Min["gpu"].Int64(), f.Partition.Step["gpu"].Int64()
		}
		if f.Price != nil {
			windows = int64(len(f.Price.Windows))
		}
		if min != c.min || step != c.step || windows != c.windows {
			t.Errorf("%s: partition %+v, price %+v", name, f.Partition, f.Price)
		}
		m := market.New(market.Options{Now: time.Now})
		if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, flavors, true); err != nil {
			t.Errorf("%s: the market refuses it: %v", name, err)
		}
	}
}
