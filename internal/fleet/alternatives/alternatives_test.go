package alternatives

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []Repeat
	}{
		"empty":                        {`{resources: {gpu: "L4:1"}, alternatives: [{}]}`, []Repeat{{0, "spec.resources"}}},
		"the same":                     {`{resources: {gpu: "L4:1", cpu: 4}, alternatives: [{gpu: "L4:1"}]}`, []Repeat{{0, "spec.resources"}}},
		"one card, and no count":       {`{resources: {gpu: "L4:1"}, alternatives: [{gpu: {models: [L4]}}]}`, []Repeat{{0, "spec.resources"}}},
		"the same cores otherwise":     {`{resources: {cpu: 4000m}, alternatives: [{cpu: "4"}]}`, []Repeat{{0, "spec.resources"}}},
		"the second of three":          {`{resources: {gpu: "H100:1"}, alternatives: [{gpu: "A100:1"}, {gpu: "L4:1"}, {gpu: "A100:1"}]}`, []Repeat{{2, "spec.alternatives[0]"}}},
		"fewer cores":                  {`{resources: {gpu: "L4:1", cpu: 8}, alternatives: [{cpu: 4}]}`, nil},
		"another model":                {`{resources: {gpu: "L4:1"}, alternatives: [{gpu: "A10:1"}]}`, nil},
		"another size of the pods":     {`{resources: {gpu: "L4:8"}, perPod: {gpu: 8}, alternatives: [{perPod: {gpu: 1}}]}`, nil},
		"the same pods, written twice": {`{resources: {gpu: "L4:8"}, perPod: {gpu: 1}, alternatives: [{perPod: {gpu: 1}}]}`, []Repeat{{0, "spec.resources"}}},
	} {
		var spec v1alpha1.IntentSpec
		if err := yaml.UnmarshalStrict([]byte(c.spec), &spec); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := Repeated(&spec); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
