package agent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What is said of one node of a flavor holds for the flavor, and for no other.
func TestCordonAndDrainOfAFlavor(t *testing.T) {
	drain := func(at string) nodeOption { return annotated(noteDrain, at) }
	for name, c := range map[string]struct {
		options []nodeOption
		cordon  bool
		drain   string
		problem string
	}{
		"nothing":           {nil, false, "", ""},
		"an annotation":     {[]nodeOption{annotated(noteCordon, "true")}, true, "", ""},
		"a label":           {[]nodeOption{labelled(noteCordon, "true")}, true, "", ""},
		"taken back":        {[]nodeOption{annotated(noteCordon, "false")}, false, "", ""},
		"drain":             {[]nodeOption{drain("2026-12-01T09:00:00+01:00")}, false, "2026-12-01T08:00:00Z", ""},
		"drain by some day": {[]nodeOption{drain("tomorrow")}, false, "", "node b: annotation fleetbroker.io/drain is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Nodes: []*corev1.Node{
				node("a", big, pool("p"), h100), node("b", big, append([]nodeOption{pool("p"), h100, younger(1)}, c.options...)...),
				node("c", big, pool("p"), h100, younger(2), drain("2027-01-01T00:00:00Z")), node("d", big, pool("other"), h100),
			}}
			if c.drain == "" {
				state.Nodes = append(state.Nodes[:2], state.Nodes[3])
			}
			flavors, _, problems := Collect(state, Memory{})
			if len(flavors) != 2 {
				t.Fatalf("%d flavors", len(flavors))
			}
			want := v1alpha1.Time{}
			if c.drain != "" {
				if err := want.UnmarshalJSON([]byte(`"` + c.drain + `"`)); err != nil {
					t.Fatal(err)
				}
			}
			other, p := flavors[0].Spec, flavors[1].Spec
			if p.Cordon != c.cordon || p.Drain != want || other.Cordon || !other.Drain.IsZero() {
				t.Errorf("cordon %t, drain %v; the other flavor %t, %v", p.Cordon, p.Drain, other.Cordon, other.Drain)
			}
			if got := strings.Join(problems, "\n"); !strings.HasPrefix(got, c.problem) || (c.problem == "") != (got == "") {
				t.Errorf("problems are %q", got)
			}
		})
	}
}

// Saying so renames nothing and splits nothing.
func TestCordonKeepsTheFlavor(t *testing.T) {
	before, memory, _ := Collect(State{Nodes: []*corev1.Node{node("a", big, h100, labelled(labelResources, "true")), node("b", big, h100, labelled(labelResources, "true"))}}, Memory{})
	after, _, _ := Collect(State{Nodes: []*corev1.Node{node("a", big, h100, labelled(labelResources, "true"), annotated(noteCordon, "true")), node("b", big, h100, labelled(labelResources, "true"))}}, memory)
	if len(before) != 1 || len(after) != 1 || before[0].Metadata.Name != after[0].Metadata.Name || !after[0].Spec.Capacity.Equal(before[0].Spec.Capacity) {
		t.Errorf("%+v became %+v", before, after)
	}
}
