package enforce

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A slice is granted its pieces of nodes only where each node has them beside the
// provider's own pods and what other slices hold or were just granted there.
func TestOfferOf_PiecesOfNodes(t *testing.T) {
	const a, b, gone = "n000000000000a", "n000000000000b", "n000000000000c"
	has := func(gpus int64) v1alpha1.Resources {
		return v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpus), v1alpha1.CPU: v1alpha1.AmountOf(gpus * 1000)}
	}
	sliced := func(gpus int64) v1alpha1.Resources {
		return v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(gpus), v1alpha1.CPU: v1alpha1.AmountOf(gpus * 1000), v1alpha1.Pods: v1alpha1.AmountOf(5)}
	}
	flavor := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{
		Capacity: has(16), Used: has(2), NodeSelector: map[string]string{"pool": "h100"},
		GPU:  &v1alpha1.FlavorGPU{ResourceName: "nvidia.com/gpu"},
		Held: map[string]v1alpha1.Resources{"other": has(4)}, HeldOn: map[string]map[string]v1alpha1.Resources{"other": {a: has(4)}, "mine": {b: has(4)}},
		Nodes: &v1alpha1.FlavorNodes{Groups: []v1alpha1.NodeGroup{{Shape: has(8), Free: has(6), Nodes: []string{a}}, {Shape: has(8), Nodes: []string{b}}}},
	}}
	on := func(node string, gpus int64) []v1alpha1.ContractNode {
		return []v1alpha1.ContractNode{{Node: node, Resources: sliced(gpus)}}
	}
	for name, tt := range map[string]struct {
		nodes  []v1alpha1.ContractNode
		given  map[string]Given
		change func(*v1alpha1.Flavor)
		want   string
	}{
		"none named":          {nil, nil, nil, ""},
		"numbered":            {on("0", 8), nil, nil, ""},
		"fits":                {on(a, 2), nil, nil, ""},
		"own pods and others": {on(a, 4), nil, nil, "node " + a + " has 2 of cpu left, contract mine has 4 of it there"},
		"what it holds":       {on(b, 8), nil, nil, ""},
		"just granted":        {on(b, 6), map[string]Given{"new": {Flavor: "h100", Resources: sliced(4), Nodes: on(b, 4)}}, nil, "node " + b + " has 4 of cpu left"},
		"of another flavor":   {on(b, 6), map[string]Given{"new": {Flavor: "a100", Resources: sliced(4), Nodes: on(b, 4)}}, nil, ""},
		"overcommitted": {on(a, 4), nil, func(f *v1alpha1.Flavor) {
			f.Spec.Overcommit = v1alpha1.Overcommit{v1alpha1.CPU: v1alpha1.DecimalFromInt(2)}
		}, "node " + a + " has 2 of gpu left"},
		"gone":           {on(gone, 1), nil, nil, "node " + gone + " of contract mine is not offered here as flavor h100"},
		"nodes not told": {on(a, 1), nil, func(f *v1alpha1.Flavor) { f.Spec.Nodes = nil }, "is not offered here"},
	} {
		f := flavor
		if tt.change != nil {
			tt.change(&f)
		}
		p := &Promise{Contract: "mine", Slice: "mine", Flavor: "h100", Resources: sliced(4), Standing: true, Nodes: tt.nodes}
		got := OfferOf([]v1alpha1.Flavor{f}, p, tt.given)
		want := tt.want
		if !got.Known || (got.Short == "") != (want == "") || !strings.HasPrefix(got.Short, want) && !strings.Contains(got.Short, want) {
			t.Errorf("%s: short %q, want %q", name, got.Short, want)
		}
	}
}
