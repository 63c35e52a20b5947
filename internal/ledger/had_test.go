package ledger

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A contract that was made smaller, or that went to another node, is shown with what it had of
// each; one that grew, or has as much where it was, is not smaller.
func TestHad(t *testing.T) {
	gpus := func(n int64) v1alpha1.Resources { return v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(n)} }
	of := func(sum int64, on ...any) *v1alpha1.Contract {
		c := &v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Slice: "s", Resources: gpus(sum)}}
		for i := 0; i < len(on); i += 2 {
			c.Spec.Nodes = append(c.Spec.Nodes, v1alpha1.ContractNode{Node: on[i].(string), Resources: gpus(int64(on[i+1].(int)))})
		}
		return c
	}
	before := of(4, "a", 4)
	for name, c := range map[string]struct {
		after *v1alpha1.Contract
		want  bool
	}{
		"as it was": {of(4, "a", 4), false}, "smaller": {of(2, "a", 2), true}, "another node": {of(4, "b", 4), true},
		"on two": {of(4, "a", 2, "b", 2), true}, "more": {of(6, "a", 4, "b", 2), false},
	} {
		if got := Smaller(before, c.after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	f := &v1alpha1.Flavor{Spec: v1alpha1.FlavorSpec{GPU: &v1alpha1.FlavorGPU{ResourceName: "nvidia.com/gpu"}, HeldOn: map[string]map[string]v1alpha1.Resources{"other": {"a": {v1alpha1.GPU: v1alpha1.AmountOf(1)}}}}}
	shown := HadBy(before, f).Max(HadBy(of(3, "a", 1, "b", 2), f)).Shown(f, "s")
	if n := shown.Spec.Held["s"][v1alpha1.GPU]; n.Int64() != 4 {
		t.Errorf("it holds %d", n.Int64())
	}
	a, b, other := shown.Spec.HeldOn["s"]["a"][v1alpha1.GPU], shown.Spec.HeldOn["s"]["b"][v1alpha1.GPU], shown.Spec.HeldOn["other"]["a"][v1alpha1.GPU]
	if a.Int64() != 4 || b.Int64() != 2 || other.Int64() != 1 {
		t.Errorf("on nodes %v", shown.Spec.HeldOn)
	}
	if f.Spec.Held != nil || len(f.Spec.HeldOn) != 1 {
		t.Error("the report changed")
	}
	if again := HadBy(of(1, "a", 1), f).Shown(shown, "s"); again != shown {
		t.Error("what holds as much is shown as another")
	}
}
