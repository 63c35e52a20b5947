package agent

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestMaxNodesIsWhatAnAutoscalerCouldMake(t *testing.T) {
	for name, c := range map[string]struct {
		note map[string]string // of each node
		gpus int64             // in scalableTo, 0 for none
		bad  bool
	}{
		"nothing is said":            {map[string]string{"a": "", "b": ""}, 0, false},
		"four nodes":                 {map[string]string{"a": "4", "b": ""}, 32, false},
		"the smaller number":         {map[string]string{"a": "9", "b": "3"}, 24, false},
		"no more than stand":         {map[string]string{"a": "2", "b": ""}, 0, false},
		"no number":                  {map[string]string{"a": "many", "b": ""}, 0, true},
		"a number that makes none":   {map[string]string{"a": "0", "b": ""}, 0, true},
		"one that nobody would have": {map[string]string{"a": "1000000", "b": ""}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			s.Cluster = "paris"
			for _, name := range sortedKeys(c.note) {
				options := []nodeOption{pool("p"), h100}
				if c.note[name] != "" {
					options = append(options, annotated(noteMaxNodes, c.note[name]))
				}
				s.Nodes = append(s.Nodes, node(name, big, options...))
			}
			flavors, _, problems := Collect(s, Memory{})
			if len(flavors) != 1 || flavors[0].Spec.ScalableTo[v1alpha1.GPU].Int64() != c.gpus || (len(flavors[0].Spec.ScalableTo) > 0) != (c.gpus > 0) {
				t.Errorf("%+v", flavors)
			}
			if (len(problems) > 0) != c.bad || c.bad && !strings.Contains(problems[0], "max-nodes") {
				t.Errorf("problems %v", problems)
			}
		})
	}
}
