package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// onNodes makes an offer nodes of 8 cards, of which so many are free.
func onNodes(free ...int64) func(*model.Offer) {
	return func(o *model.Offer) {
		Cards("nvidia-h100", 8*len(free), "80Gi")(o)
		n := int64(len(free))
		shape := Amounts("cpu=96 memory=1Ti pods=110 gpu=8")
		s := &o.Flavor.Spec
		s.Capacity[v1alpha1.CPU], s.Capacity[v1alpha1.Memory] = v1alpha1.AmountOf(96_000*n), shape[v1alpha1.Memory].Mul(n)
		s.Capacity[v1alpha1.Pods] = v1alpha1.AmountOf(1000)
		s.Nodes, s.Used = &v1alpha1.FlavorNodes{}, v1alpha1.Resources{}
		for i, left := range free {
			have := shape.Clone()
			have[v1alpha1.GPU] = v1alpha1.AmountOf(left)
			s.Used[v1alpha1.GPU] = s.Used[v1alpha1.GPU].Add(v1alpha1.AmountOf(8 - left))
			s.Nodes.Groups = append(s.Nodes.Groups, v1alpha1.NodeGroup{Shape: shape, Free: have, Nodes: []string{fmt.Sprintf("n%013d", i)}})
		}
	}
}

func perPod(gpus int64, named string) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.PerPod = &v1alpha1.PodRequest{GPUs: gpus, Named: Amounts(named)} })
}

// nodesText is on which nodes an intent's contracts lie: "1:8" is 8 GPUs on the second.
func nodesText(p *draft.Plan, name string) string {
	var out []string
	for i := range p.Contracts {
		c := p.Contracts[i].After
		if c == nil || c.Metadata.Namespace+"/"+c.Spec.Intent.Name != name || !c.Status.Phase.Charged() {
			continue
		}
		sum := v1alpha1.Resources{}
		for _, n := range c.Spec.Nodes {
			out = append(out, strings.TrimLeft(strings.TrimPrefix(n.Node, "n"), "0")+":"+n.Resources["nvidia.com/gpu"].Canonical("gpu"))
			sum = sum.Add(n.Resources)
			if len(n.Resources) != len(c.Spec.Resources) {
				out = append(out, fmt.Sprintf("not every key: %v", n.Resources))
			}
		}
		if len(c.Spec.Nodes) > 0 && !sum.Equal(c.Spec.Resources) {
			out = append(out, fmt.Sprintf("nodes have %v, the contract %v", sum.Canonical(), c.Spec.Resources.Canonical()))
		}
	}
	return strings.Join(out, " ")
}

// Eight GPUs that are free four and four on two nodes are no room for one pod of eight, and
// they are for eight pods of one.
func TestNodes_OnePodLiesOnOneNode(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(4, 4)).
		Intent("vision/train", Wants(8))
	p := step(t, b, "four and four", map[string]string{"vision/train": "queue NothingFits"})
	d := Of(p, "vision/train")
	if d.Rejected[match.ReqNode] != 1 {
		t.Errorf("rejected %v", d.Rejected)
	}
	if got := fmt.Sprint(d.Near); !strings.Contains(got, "paris/h100 has 8 GPUs free on 2 nodes, at most 4 on one") {
		t.Errorf("near %s", got)
	}
	if got := fmt.Sprint(d.Try); !strings.Contains(got, "perPod: {gpu: 1}") {
		t.Errorf("try %s", got)
	}
	b.Intent("vision/train", Wants(8), perPod(1, ""))
	p = step(t, b, "pods of one", map[string]string{"vision/train": "place"})
	if got := nodesText(p, "vision/train"); got != ":4 1:4" {
		t.Errorf("on %s", got)
	}
}
