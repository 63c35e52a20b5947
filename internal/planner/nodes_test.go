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

// Contracts of 1, 2 and 4 GPUs on two nodes of 8 that are partly in use keep whole nodes
// whole, whatever the order in which they come; a pod bigger than any piece waits.
func TestNodes_PacksInAnyOrder(t *testing.T) {
	sizes := []int32{4, 2, 1, 4, 1}
	for n, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 2, 3, 4, 0}} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(4, 8))
		for _, i := range order {
			name := fmt.Sprintf("vision/i%d", i)
			b.Intent(name, Wants(sizes[i]))
			p := step(t, b, fmt.Sprint("order ", n), map[string]string{name: "place"})
			if got := nodesText(p, name); strings.Count(got, ":") != 1 || !strings.HasSuffix(got, fmt.Sprint(":", sizes[i])) {
				t.Errorf("order %d: %s lies on %q", n, name, got)
			}
		}
		b.Intent("vision/big", Wants(4))
		p := step(t, b, "nothing is left", map[string]string{"vision/big": "queue NothingFits"})
		if r := Of(p, "vision/big").Rejected; r["capacity.gpu"] != 1 {
			t.Errorf("order %d: rejected %v", n, r)
		}
	}
}

// A replica bigger than a node takes whole nodes of it, and the rest on another.
func TestNodes_WholeNodes(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8, 8)).
		Intent("vision/train", Wants(20))
	p := step(t, b, "two and a half", map[string]string{"vision/train": "place"})
	if got := nodesText(p, "vision/train"); got != ":8 1:8 2:4" {
		t.Errorf("on %s", got)
	}
	b = New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 7, 8)).
		Intent("vision/train", Wants(20))
	p = step(t, b, "the rest goes where something is taken", map[string]string{"vision/train": "place"})
	if got := nodesText(p, "vision/train"); got != ":8 1:4 2:8" {
		t.Errorf("on %s", got)
	}
}

// The whole of what a pod asks for lies on one node: cores and memory too.
func TestNodes_WholeAsk(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8), func(o *model.Offer) {
		g := o.Flavor.Spec.Nodes.Groups
		g[0].Free[v1alpha1.CPU] = v1alpha1.AmountOf(16_000)
	}).Intent("vision/a", Wants(8), With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(32_000) }))
	p := step(t, b, "the other node", map[string]string{"vision/a": "place"})
	if got := nodesText(p, "vision/a"); got != "1:8" {
		t.Errorf("on %s", got)
	}
	b.Intent("vision/b", Wants(8), With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(32_000) }))
	p = step(t, b, "no node has the cores", map[string]string{"vision/b": "queue NothingFits"})
	if got := fmt.Sprint(Of(p, "vision/b").Near); !strings.Contains(got, "8 GPUs free on 1 node, at most 8 on one, with at most 16 cpu next to what a pod needs of them") {
		t.Errorf("near %s", got)
	}
}

// What has gone by the ledger and not by the report is counted once, of each node the
// larger; a file's flavor is numbered.
func TestNodes_OfAFile(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", Static, Cards("nvidia-h100", 16, "80Gi"), Capacity("cpu=192 memory=2Ti"), Spec(func(s *v1alpha1.FlavorSpec) {
		s.Nodes = &v1alpha1.FlavorNodes{Count: 2, Size: Amounts("gpu=8 cpu=96 memory=1Ti")}
	})).Intent("vision/a", Wants(6)).Intent("vision/b", Wants(6)).Intent("vision/c", Wants(4))
	p := b.Round()
	if a, bb := nodesText(p, "vision/a"), nodesText(p, "vision/b"); strings.Count(a+bb, ":6") != 2 || strings.HasPrefix(a, ":") == strings.HasPrefix(bb, ":") {
		t.Errorf("on %q and %q", a, bb)
	}
	if d := Of(p, "vision/c"); d.Action != draft.Queued || d.Rejected[match.ReqNode] != 1 {
		t.Errorf("%s %v", d.Action, d.Rejected)
	}
	wantOnlyKeeps(t, b)
}

// Others of lower priority give way where that frees a node, and not those whose leaving
// would free pieces of two.
func TestNodes_PreemptsOnOneNode(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Tenant("bio", "rome").Offer("paris/h100", onNodes(8, 8)).
		Intent("bio/a", Wants(4), Priority(1)).Intent("bio/b", Wants(4), Priority(1))
	b = settled(b) // both on one node
	b.Intent("bio/c", Wants(4), Priority(1))
	b = settled(b)
	b.Intent("vision/train", Wants(8), preempts(100))
	p := step(t, b, "notice", map[string]string{"vision/train": "queue Preempting"})
	var gave []string
	for _, name := range []string{"bio/a", "bio/b", "bio/c"} {
		if Of(p, name).Action == draft.Preempt {
			gave = append(gave, name)
		}
	}
	if fmt.Sprint(gave) != "[bio/c]" {
		t.Errorf("%v give way\n%s", gave, describe(p))
	}
}

// A batch whose numbers fit an offer in total, and not its nodes, is placed at the next
// offer, and nobody is left out.
func TestNodes_BatchGoesToTheNextOffer(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Provider("lyon").Tenant("vision", "rome").
		Offer("paris/h100", onNodes(4, 4, 4, 4), Costs("1")).Offer("lyon/h100", onNodes(8, 8, 8), Costs("2"))
	for i := range 4 {
		size := int32(6)
		if i%2 == 0 {
			size = 4
		}
		b.Intent(fmt.Sprintf("vision/i%d", i), Wants(size), With(func(s *v1alpha1.IntentSpec) { s.Objective = "cost" }))
	}
	p := b.Round()
	for i := range 4 {
		d := Of(p, fmt.Sprintf("vision/i%d", i))
		if want := []string{"paris", "lyon"}[i%2]; d.Action != draft.Place || d.Contracts[0].Provider != want {
			t.Errorf("%s: %s %v", d.Name, d.Action, d.Contracts)
		}
	}
	wantOnlyKeeps(t, b)
}
