package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// ownPods is how many GPUs of a node the provider's own pods take.
func ownPods(node, gpus int64) func(*model.Offer) {
	return func(o *model.Offer) {
		s := &o.Flavor.Spec
		s.Used = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpus)}
		s.Nodes = &v1alpha1.FlavorNodes{Groups: slices.Clone(s.Nodes.Groups)}
		g := s.Nodes.Groups[node]
		g.Free = g.Shape.Clone()
		g.Free[v1alpha1.GPU] = g.Shape[v1alpha1.GPU].Sub(v1alpha1.AmountOf(gpus))
		s.Nodes.Groups[node] = g
	}
}

// withoutNode is an offer whose first node is gone.
func withoutNode(o *model.Offer) {
	s := &o.Flavor.Spec
	first := s.Nodes.Groups[0]
	s.Nodes, s.Capacity = &v1alpha1.FlavorNodes{Groups: s.Nodes.Groups[1:]}, s.Capacity.Clone()
	for name, amount := range first.Shape {
		s.Capacity[name] = s.Capacity[name].Sub(amount)
	}
}

func refuses(contract, why string) func(*model.Offer) {
	return func(o *model.Offer) { o.Flavor.Spec.Refused = map[string]string{contract: why} }
}

// oneByOne places intents of so many GPUs, a0 the oldest, and runs them.
func oneByOne(b *Builder, sizes ...int32) *Builder {
	for i, n := range sizes {
		b.Intent(fmt.Sprintf("vision/a%d", i), Wants(n))
		b = settled(b)
		b.Tick(time.Second)
	}
	return b
}

// phasesText is the phase of each intent's newest contract, with the reason.
func phasesText(b *Builder, intents int) string {
	var out []string
	for i := range intents {
		var of []string
		for _, c := range b.Contracts(fmt.Sprintf("vision/a%d", i)) {
			of = append(of, strings.TrimSpace(string(c.Status.Phase)+" "+c.Status.Reason))
		}
		out = append(out, strings.Join(of, "+"))
	}
	return strings.Join(out, ", ")
}

// What own pods take of a node is lacking there: contracts on other nodes stay Active, and
// where the provider reports whose piece is gone, others on that node do too.
func TestNodes_ExcessIsOfTheNode(t *testing.T) {
	world := func() *Builder {
		return oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8)), 4, 4, 4, 4)
	}
	b := world()
	for i, want := range []string{":4", ":4", "1:4", "1:4"} {
		n := b.Contracts(fmt.Sprintf("vision/a%d", i))[0].Spec.Nodes
		if got := strings.TrimLeft(n[0].Node[1:], "0"); len(n) != 1 || got+":4" != want {
			t.Fatalf("a%d lies on %q, want %q", i, got, want)
		}
	}
	b.Offer("paris/h100", ownPods(0, 2)).Round()
	if got := phasesText(b, 4); got != "Active, Degraded FlavorShrunk, Active, Active" {
		t.Errorf("the youngest on the node: %s", got)
	}
	wantOnlyKeeps(t, b)

	b = world()
	b.Offer("paris/h100", ownPods(0, 2), refuses(b.Contracts("vision/a0")[0].Metadata.Name, "node n0: 2 of 4 gpu are left there")).Round()
	if got := phasesText(b, 4); got != "Degraded "+ledger.DegradedRefused+", Active, Active, Active" {
		t.Errorf("whom the provider refuses: %s", got)
	}
	b.Offer("paris/h100", ownPods(0, 0), func(o *model.Offer) { o.Flavor.Spec.Refused = nil }).Round()
	b.Tick(time.Second).Deliver().Round()
	if got := phasesText(b, 4); got != "Active, Active, Active, Active" {
		t.Errorf("the own pods are gone: %s", got)
	}
}

// A node that is gone takes the contracts with it that lie there, and no others: they are
// placed again where another offer has room, and wait otherwise.
func TestNodes_GoneNode(t *testing.T) {
	b := oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8, 8)), 8, 8, 8)
	b.Provider("lyon").Offer("lyon/h100", onNodes(8)).Offer("paris/h100", withoutNode).Round()
	if got := phasesText(b, 3); got != "Degraded FlavorShrunk, Active, Active" {
		t.Fatal(got)
	}
	b.Tick(5 * time.Minute)
	p := b.Round()
	if got := phasesText(b, 3); got != "Releasing FlavorShrunk+Reserved, Active, Active" || nodesText(p, "vision/a0") != ":8" {
		t.Errorf("%s\n%s", got, describe(p))
	}
}

// What lies on a node that is gone is given another node of the offer, alone, and stays a
// contract of the same name: at the end of the grace, though the flavor has room, and
// whatever its provider still says of the node before.
func TestNodes_RemapsWhatIsGone(t *testing.T) {
	b := oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8, 8)), 8, 8)
	c := b.Contracts("vision/a0")[0]
	name, hash := c.Metadata.Name, c.Spec.Nodes[0].Node
	b.Offer("paris/h100", withoutNode, refuses(name, onnodes.Refusal(hash, "it is gone"))).Round()
	if got := phasesText(b, 2); got != "Degraded "+ledger.DegradedNode+", Active" {
		t.Fatal(got)
	}
	wantOnlyKeeps(t, b)
	b.Tick(5 * time.Minute)
	p := b.Round()
	c = b.Contracts("vision/a0")[0]
	if got := nodesText(p, "vision/a0"); got != "2:8" || c.Metadata.Name != name || len(b.Contracts("vision/a0")) != 1 {
		t.Fatalf("on %s\n%s", got, describe(p))
	}
	if v := c.VirtualNodes(); len(v) != 1 || v[0].Name != name+".2" || v[0].Node != c.Spec.Nodes[0].Node {
		t.Errorf("virtual nodes %+v", v)
	}
	if err := onnodes.Contract(c); err != nil {
		t.Error(err)
	}
	if d := Of(p, "vision/a0"); d.Code != lifecycle.CodeRemapped || len(c.Decision.Offer.Nodes) != 1 {
		t.Errorf("%s %s, figures of %v", d.Action, d.Code, c.Decision.Offer.Nodes)
	}
	wantOnlyKeeps(t, b)
	b.Tick(time.Second).Deliver().Round() // its provider has not heard of it yet
	if got := phasesText(b, 2); got != "Active, Active" {
		t.Error(got)
	}
	wantOnlyKeeps(t, b)
}

// Of a replica on several nodes one part goes, and the others stay on theirs, as their
// virtual nodes do, when it is resized later too.
func TestNodes_RemapsOnePart(t *testing.T) {
	b := oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8, 8, 8)), 20)
	virtual := func() (out []string) {
		for _, v := range b.Contracts("vision/a0")[0].VirtualNodes() {
			out = append(out, strings.TrimLeft(v.Node[1:], "0")+"="+v.Name[strings.LastIndex(v.Name, "."):])
		}
		return out
	}
	if got := fmt.Sprint(virtual()); got != "[=.1 1=.2 2=.3]" {
		t.Fatal(got)
	}
	b.Offer("paris/h100", withoutNode).Round()
	b.Tick(5 * time.Minute).Round()
	if got := fmt.Sprint(virtual()); got != "[3=.4 1=.2 2=.3]" {
		t.Fatalf("%s, %s", got, phasesText(b, 1))
	}
	b.Tick(time.Minute).Deliver().Round()
	b.Intent("vision/a0", Wants(18))
	p := b.Round()
	if got := fmt.Sprint(virtual()); got != "[3=.4 1=.2 2=.3]" || len(b.Contracts("vision/a0")) != 1 {
		t.Errorf("resized: %s\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// A node that has less than was sold of it makes whom it cannot hold Degraded although the
// flavor has enough, and what another node has is given in its place.
func TestNodes_RemapsWhatLacks(t *testing.T) {
	b := oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8)), 4, 2)
	b.Offer("paris/h100", ownPods(0, 4)).Round()
	if got := phasesText(b, 2); got != "Active, Degraded "+ledger.DegradedNode {
		t.Fatalf("the youngest on the node: %s", got)
	}
	wantOnlyKeeps(t, b)
	b.Tick(5 * time.Minute)
	p := b.Round()
	if got := nodesText(p, "vision/a1"); got != "1:2" || len(b.Contracts("vision/a1")) != 1 {
		t.Fatalf("on %s\n%s", got, describe(p))
	}
	b.Tick(time.Minute).Deliver().Round()
	if got := phasesText(b, 2); got != "Active, Active" {
		t.Error(got)
	}
	wantOnlyKeeps(t, b)

	b.Offer("paris/h100", onNodes(8, 8), Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = true }), ownPods(1, 7)).Round()
	b.Tick(5 * time.Minute).Round()
	if got := phasesText(b, 2); got != "Active, Degraded "+ledger.DegradedNode {
		t.Errorf("nothing is sold there: %s", got)
	}
}

// An agent that is about to label its nodes sells nothing that lies on one.
func TestNodes_NoneLabelledYet(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8), Spec(func(s *v1alpha1.FlavorSpec) {
		s.Nodes = &v1alpha1.FlavorNodes{}
	})).Intent("vision/a0", Wants(4))
	step(t, b, "no node bears its label", map[string]string{"vision/a0": "queue NothingFits"})
	b.Offer("paris/h100", onNodes(8, 8))
	if p := b.Round(); nodesText(p, "vision/a0") != ":4" {
		t.Errorf("on %q\n%s", nodesText(p, "vision/a0"), describe(p))
	}
}

// What a provider reports as held on a node that it does not list takes nothing of the
// others, and bounds what the flavor sells all the same.
func TestNodes_HeldOnUnknownNodes(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8), func(o *model.Offer) {
		o.Flavor.Spec.Held = map[string]v1alpha1.Resources{"stranger": Amounts("gpu=6")}
		o.Flavor.Spec.HeldOn = map[string]map[string]v1alpha1.Resources{"stranger": {"nzzzzzzzzzzzzz": Amounts("gpu=6")}}
	}).Intent("vision/a0", Wants(8)).Intent("vision/a1", Wants(8))
	p := b.Round()
	if got := nodesText(p, "vision/a0") + nodesText(p, "vision/a1"); strings.Count(got, ":8") != 1 {
		t.Errorf("on %q of 10 GPUs\n%s", got, describe(p))
	}
	b.Intent("vision/a1", Wants(2))
	if p = b.Round(); nodesText(p, "vision/a1") == "" {
		t.Errorf("2 GPUs are left\n%s", describe(p))
	}
}

// A contract that names no nodes runs on a virtual node that Liqo made: it stays without
// nodes when it is resized.
func TestNodes_WithoutNodesStaysSo(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", Cards("nvidia-h100", 16, "80Gi"), Capacity("cpu=192 memory=2Ti")).
		Intent("vision/a0", Wants(4))
	b = settled(b)
	name := b.Contracts("vision/a0")[0].Metadata.Name
	b.Offer("paris/h100", onNodes(8, 8))
	for _, n := range []int32{2, 6} {
		b.Tick(time.Minute).Intent("vision/a0", Wants(n))
		p := b.Round()
		list := b.Contracts("vision/a0")
		if len(list) != 1 || list[0].Metadata.Name != name || list[0].Spec.GPUs.Count != int64(n) || len(list[0].Spec.Nodes) != 0 {
			t.Fatalf("%d GPUs: %d contracts, on %q\n%s", n, len(list), nodesText(p, "vision/a0"), describe(p))
		}
		b = settled(b)
	}
	b.Intent("vision/a1", Wants(8))
	p := b.Round()
	if got := nodesText(p, "vision/a1"); !strings.HasSuffix(got, ":8") {
		t.Errorf("a new one lies on %q\n%s", got, describe(p))
	}
}

// What a contract has of its nodes grows and shrinks in place; on other nodes it is another
// contract, because its virtual nodes are named and pinned by them.
func TestNodes_ResizeKeepsNodes(t *testing.T) {
	b := oneByOne(New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(6, 8)), 4)
	name := b.Contracts("vision/a0")[0].Metadata.Name
	b.Intent("vision/a0", Wants(6))
	p := b.Round()
	if list := b.Contracts("vision/a0"); len(list) != 1 || list[0].Metadata.Name != name || nodesText(p, "vision/a0") != ":6" {
		t.Fatalf("%s\n%s", nodesText(p, "vision/a0"), describe(p))
	}
	b = settled(b)
	b.Tick(time.Minute).Intent("vision/a0", Wants(8))
	p = b.Round()
	if list := b.Contracts("vision/a0"); len(list) != 2 || nodesText(p, "vision/a0") != "1:8" {
		t.Fatalf("%d contracts, on %s\n%s", len(list), nodesText(p, "vision/a0"), describe(p))
	}
}

// A reservation that names nodes is not resized without any: it names those that it has until
// others of its size are free.
func TestNodes_ResizeNamesNodes(t *testing.T) {
	ram := func(text string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Resources.Named["memory"] = Amounts("memory=" + text)["memory"] })
	}
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8)).
		Intent("vision/a0", Wants(16), ram("128Gi"), reserved)
	b.Round()
	b.Tick(time.Second).Offer("paris/h100", withoutNode).Intent("vision/a0", Wants(16), ram("64Gi"), reserved)
	p := b.Round()
	if list := b.Contracts("vision/a0"); len(list) != 1 || len(list[0].Spec.Nodes) != 2 {
		t.Errorf("%d contracts, on %s\n%s", len(list), nodesText(p, "vision/a0"), describe(p))
	}
	wantOnlyKeeps(t, b)
}

// What the planner writes of nodes is what the ledger reads: each has cores and memory,
// however little a replica asks for.
func TestNodes_EachHasCoresAndMemory(t *testing.T) {
	for _, cpu := range []int64{1, 3, 4, 7, 9} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(4, 4)).
			Intent("vision/a0", Wants(8), perPod(1, ""), With(func(s *v1alpha1.IntentSpec) {
				s.Resources.Named[v1alpha1.CPU], s.Resources.Named[v1alpha1.Memory] = v1alpha1.AmountOf(cpu), v1alpha1.AmountOf(cpu)
			}))
		p, placed := b.Round(), len(b.Contracts("vision/a0")) > 0
		if placed != (cpu > 1) {
			t.Errorf("%dm cpu for two nodes: placed %v", cpu, placed)
		}
		for _, c := range b.Contracts("vision/a0") {
			if err := onnodes.Contract(c); err != nil {
				t.Errorf("%dm cpu: %v\n%s", cpu, err, describe(p))
			}
		}
	}
}

// The rest of a replica may lie on a node of its own only with cores and memory that no pod
// needs.
func TestNodes_RestHasCoresAndMemory(t *testing.T) {
	for cpu, want := range map[string]string{"cpu=64 memory=64Gi": "queue", "cpu=65 memory=65Gi": "place"} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", onNodes(8, 8)).
			Intent("vision/a0", Wants(12), perPod(8, "cpu=64 memory=64Gi"), With(func(s *v1alpha1.IntentSpec) {
				s.Resources.Named = Amounts(cpu + " pods=20")
			}))
		if p := b.Round(); string(Of(p, "vision/a0").Action) != want {
			t.Errorf("%s: want %s\n%s", cpu, want, describe(p))
		}
		for _, c := range b.Contracts("vision/a0") {
			if err := onnodes.Contract(c); err != nil {
				t.Errorf("%s: %v", cpu, err)
			}
		}
		wantOnlyKeeps(t, b)
	}
}
