package doctor

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestNodeNotes(t *testing.T) {
	node := func(name, gpus string, labels map[string]any) unstructured.Unstructured {
		labels["fleetbroker.io/pool"] = "h100"
		return unstructured.Unstructured{Object: map[string]any{
			"kind": "Node", "metadata": map[string]any{"name": name, "labels": labels},
			"status": map[string]any{"allocatable": map[string]any{"cpu": "8", "nvidia.com/gpu": gpus}},
		}}
	}
	clusters := map[string]*Cluster{
		"paris": {Name: "paris", Objects: map[Kind][]unstructured.Unstructured{Nodes: {node("a", "8", map[string]any{v1alpha1.LabelNode: "n0123456789abc"}), node("b", "8", map[string]any{}), node("cpu", "0", map[string]any{})}}},
		"milan": {Name: "milan", Objects: map[Kind][]unstructured.Unstructured{Nodes: {node("a", "8", map[string]any{v1alpha1.LabelNode: "n0123456789abc"})}}},
		"rome":  {Name: "rome"}, // its nodes were not read
	}
	file := func(provider, name string, nodes *v1alpha1.FlavorNodes, gpus int64) *v1alpha1.Flavor {
		return &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: name, Namespace: provider}, Spec: v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpus)}, Nodes: nodes}}
	}
	got := NodeNotes(clusters, []*v1alpha1.Flavor{
		file("milan", "a100", nil, 8), file("milan", "cpu", nil, 0), file("milan", "l40s", &v1alpha1.FlavorNodes{Count: 1}, 8), file("oslo", "a100", nil, 8),
	})
	want := []string{"cluster paris: 1 of 2 offered nodes with accelerators have no label fleetbroker.io/node", "flavor milan/a100 of a file states no nodes: all of it counts as one node"}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got %q, want %q", got, want)
	}
}
