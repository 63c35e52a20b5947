package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// partsOnNodes makes an offer sell parts of cards on nodes of two cards with so many units
// each, of which so many are free.
func partsOnNodes(kind string, per int64, free ...int64) func(*model.Offer) {
	return func(o *model.Offer) {
		onNodes(free...)(o)
		s := &o.Flavor.Spec
		gpu := *s.GPU
		s.GPU = &gpu
		s.GPU.Sharing, s.GPU.UnitsPerGPU = kind, int32(per)
		if kind == "mig" {
			s.GPU.Profile = "1g.10gb"
		}
		s.Capacity[v1alpha1.GPU], s.Used[v1alpha1.GPU] = v1alpha1.AmountOf(2*per*int64(len(free))), v1alpha1.Amount{}
		for i, left := range free {
			g := &s.Nodes.Groups[i]
			g.Shape, g.Free = g.Shape.Clone(), g.Free.Clone()
			g.Shape[v1alpha1.GPU], g.Free[v1alpha1.GPU] = v1alpha1.AmountOf(2*per), v1alpha1.AmountOf(left)
			s.Used[v1alpha1.GPU] = s.Used[v1alpha1.GPU].Add(v1alpha1.AmountOf(2*per - left))
		}
	}
}

func partsOf(kind string, per int64, free ...int64) *Builder {
	return New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", partsOnNodes(kind, per, free...))
}

// Three instances that are free on each of two nodes are no room for one pod of four, and
// they are for four pods of one.
func TestNodes_InstancesOfMIG(t *testing.T) {
	b := partsOf("mig", 7, 3, 3).Intent("vision/serve", wantsUnits(4, "mig"))
	p := step(t, b, "three and three", map[string]string{"vision/serve": "queue NothingFits"})
	if d := Of(p, "vision/serve"); d.Rejected[match.ReqNode] != 1 || !strings.Contains(fmt.Sprint(d.Near), "paris/h100 has 6 instances of 1g.10gb free on 2 nodes, at most 3 on one") || !strings.Contains(fmt.Sprint(d.Try), "perPod: {gpu: 1}") {
		t.Errorf("rejected %v, near %v, try %v", d.Rejected, d.Near, d.Try)
	}
	b.Intent("vision/serve", wantsUnits(4, "mig"), perPod(1, ""))
	p = step(t, b, "pods of one", map[string]string{"vision/serve": "place"})
	if got := nodesText(p, "vision/serve"); got != ":1 1:3" && got != ":3 1:1" {
		t.Errorf("on %s", got)
	}
	wantOnlyKeeps(t, b)
}

// By rules of before, and of a flavor that tells no nodes, instances are sold as a pool.
func TestNodes_InstancesByOlderRules(t *testing.T) {
	b := partsOf("mig", 7, 3, 3).Intent("vision/serve", wantsUnits(4, "mig"))
	b.W.Rules = draft.RulesPartsOnNodes - 1
	if d := Of(b.Round(), "vision/serve"); d.Action != draft.Place {
		t.Errorf("by rules %d: %s %s", b.W.Rules, d.Action, d.Reason)
	}
	b.W.Rules = 0
	wantOnlyKeeps(t, b) // what stands is kept without nodes
	b = partsOf("mig", 7, 3, 3).Offer("paris/h100", partsOnNodes("mig", 7, 3, 3), Spec(func(s *v1alpha1.FlavorSpec) { s.Nodes = nil })).
		Intent("vision/serve", wantsUnits(4, "mig"))
	if d := Of(b.Round(), "vision/serve"); d.Action != draft.Place {
		t.Errorf("without nodes: %s %s", d.Action, d.Reason)
	}
}

// A share lies on one card of one node: what is free of a node on several is no room.
func TestNodes_SharesLieOnOneCardOfANode(t *testing.T) {
	b := partsOf("mps", 4, 8, 8)
	for i := range 4 { // 3 of 4 units of each card
		b.Intent(fmt.Sprintf("vision/a%d", i), wantsShare("0.75"))
		b = settled(b)
	}
	on := map[v1alpha1.CardUnits]bool{}
	for i := range 4 {
		for _, u := range b.Contracts(fmt.Sprintf("vision/a%d", i))[0].Spec.GPUs.Cards {
			on[u] = true
		}
	}
	if len(on) != 4 {
		t.Fatalf("four shares of 0.75 lie on %v", on)
	}
	b.Intent("vision/half", wantsShare("0.5"))
	p := step(t, b, "a quarter of each card", map[string]string{"vision/half": "queue NothingFits"})
	if d := Of(p, "vision/half"); d.Rejected[match.ReqCard] != 1 {
		t.Errorf("rejected %v", d.Rejected)
	}
	b.Intent("vision/quarter", wantsShare("0.25"))
	p = step(t, b, "a quarter", map[string]string{"vision/quarter": "place"})
	c := b.Contracts("vision/quarter")[0]
	if len(c.Spec.Nodes) != 1 || len(c.Spec.GPUs.Cards) != 1 || c.Spec.GPUs.Cards[0].Node != c.Spec.Nodes[0].Node {
		t.Errorf("on %v of %v\n%s", c.Spec.GPUs.Cards, c.Spec.Nodes, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// Units of which the provider's own pods leave a card's worth on no node, or on one alone.
func TestNodes_SharesNextToOwnPods(t *testing.T) {
	b := partsOf("time-slicing", 4, 3, 6).Intent("vision/whole", wantsUnits(4, "time-slicing"))
	p := step(t, b, "a whole card is on the second node", map[string]string{"vision/whole": "place"})
	if got := nodesText(p, "vision/whole"); got != "1:4" {
		t.Errorf("on %s", got)
	}
	b.Intent("vision/more", wantsUnits(4, "time-slicing"))
	step(t, b, "none is whole any more", map[string]string{"vision/more": "queue NothingFits"})
	b.Intent("vision/part", wantsShare("0.75"))
	p = step(t, b, "three quarters", map[string]string{"vision/part": "place"})
	if got := nodesText(p, "vision/part"); got != ":3" {
		t.Errorf("on %s\n%s", got, describe(p))
	}
}

// What a contract has on a node that is gone goes to another, with cards of that.
func TestNodes_PartsOfCardsAreRemapped(t *testing.T) {
	for kind, per := range map[string]int64{"mig": 7, "mps": 4} {
		b := partsOf(kind, per, 2*per, 2*per).Intent("vision/a", wantsUnits(3, kind))
		b = settled(b)
		was := b.Contracts("vision/a")[0]
		gone := slices.IndexFunc(b.W.Offers[0].Flavor.Spec.Nodes.Groups, func(g v1alpha1.NodeGroup) bool { return g.Nodes[0] == was.Spec.Nodes[0].Node })
		b.Offer("paris/h100", func(o *model.Offer) {
			s := &o.Flavor.Spec
			s.Nodes = &v1alpha1.FlavorNodes{Groups: slices.Delete(slices.Clone(s.Nodes.Groups), gone, gone+1)}
			s.Capacity = s.Capacity.Clone()
			s.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(2 * per)
		})
		b.Round()
		b.Tick(5 * time.Minute)
		p := b.Round()
		now := b.Contracts("vision/a")
		if len(now) != 1 || now[0].Metadata.Name != was.Metadata.Name || now[0].Spec.Nodes[0].Node == was.Spec.Nodes[0].Node {
			t.Fatalf("%s: %v\n%s", kind, now, describe(p))
		}
		for _, u := range now[0].Spec.GPUs.Cards {
			if u.Node != now[0].Spec.Nodes[0].Node {
				t.Errorf("%s: card %v of node %s", kind, u, now[0].Spec.Nodes[0].Node)
			}
		}
	}
}

// Others give way for instances on one node, and for a share on one card.
func TestNodes_PreemptsForPartsOfCards(t *testing.T) {
	for kind, per := range map[string]int64{"mig": 7, "mps": 7} {
		b := partsOf(kind, per, 14, 14).Tenant("bio", "rome")
		for i := range 4 {
			b.Intent(fmt.Sprintf("bio/a%d", i), wantsUnits(7, kind), Priority(1))
			b = settled(b)
		}
		b.Intent("vision/serve", wantsUnits(7, kind), preempts(100))
		p := step(t, b, kind, map[string]string{"vision/serve": "queue Preempting"})
		gave := 0
		for i := range 4 {
			if Of(p, fmt.Sprintf("bio/a%d", i)).Action == draft.Preempt {
				gave++
			}
		}
		if gave != 1 {
			t.Errorf("%s: %d give way\n%s", kind, gave, describe(p))
		}
	}
}

// Whatever comes and goes, no node and no card of one has more than it makes, each part of
// a contract lies on cards of its node, a share on one card, and nothing is due afterwards.
func TestNodes_PartsOfCardsInAnyStory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"mig", "mps", "time-slicing"}).Draw(t, "kind")
		per := rapid.Int64Range(2, 7).Draw(t, "units of a card")
		free := rapid.SliceOfN(rapid.Int64Range(0, 2*per), 1, 4).Draw(t, "free")
		b := partsOf(kind, per, free...)
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				name := fmt.Sprintf("vision/i%d", rapid.IntRange(0, 5).Draw(t, "intent"))
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					b.Remove(name)
				case 1:
					b.Intent(name, wantsShare(fmt.Sprintf("0.%d", rapid.IntRange(1, 9).Draw(t, "share"))))
				case 2:
					b.Intent(name, wantsUnits(int32(rapid.Int64Range(1, 3*per).Draw(t, "units")), kind))
				case 3:
					b.Intent(name, wantsUnits(int32(rapid.Int64Range(1, 3*per).Draw(t, "units")), kind), perPod(1, ""))
				}
			}
			p := b.Round()
			checkPartsOfCards(t, b, per, p)
			b.Tick(time.Minute).Deliver()
		}
	})
}

func checkPartsOfCards(t *rapid.T, b *Builder, per int64, p *planner.Plan) {
	f := b.W.Offers[0].Flavor
	units := map[string]int64{}
	for _, n := range ledger.NodesOf(f) {
		units[n.Name] = n.Sellable[v1alpha1.GPU].Int64()
	}
	cards, left := map[v1alpha1.CardUnits]int64{}, units
	for c := range b.W.Ledger.Contracts() {
		if !c.Status.Phase.Held() {
			continue
		}
		on := map[string]int64{}
		for _, n := range c.Spec.Nodes {
			on[n.Node] = n.Resources[c.Spec.GPUs.ResourceName].Int64()
			left[n.Node] -= on[n.Node]
		}
		sum := int64(0)
		for _, u := range c.Spec.GPUs.Cards {
			cards[v1alpha1.CardUnits{Node: u.Node, Card: u.Card}] += u.Units
			on[u.Node] -= u.Units
			sum += u.Units
			if u.Card < 0 || u.Card > 1 {
				t.Fatalf("%s is on card %d of a node of two\n%s", c.Metadata.Name, u.Card, describe(p))
			}
		}
		for node, n := range on {
			if n != 0 {
				t.Fatalf("%s has %d units of %s on no card: %v of %v\n%s", c.Metadata.Name, n, node, c.Spec.GPUs.Cards, c.Spec.Nodes, describe(p))
			}
		}
		if sum != c.Spec.GPUs.Count || len(c.Spec.Nodes) == 0 {
			t.Fatalf("%s has %d of %d units on cards of %v\n%s", c.Metadata.Name, sum, c.Spec.GPUs.Count, c.Spec.Nodes, describe(p))
		}
	}
	for node, n := range left {
		if n < 0 {
			t.Fatalf("%s is oversold by %d\n%s", node, -n, describe(p))
		}
	}
	for u, n := range cards {
		if n > per {
			t.Fatalf("card %d of %s has %d of %d units\n%s", u.Card, u.Node, n, per, describe(p))
		}
	}
}

// A MIG profile is one, whether it is written as a product names it or as a resource does.
func TestMIGProfilesAreOneHoweverWritten(t *testing.T) {
	for _, c := range []struct {
		have, want string
		rules      int
		fits       bool
	}{
		{"1g.10gb.me", "1g.10gb+me", 0, true},
		{"1g.10gb+me", "1g.10gb.me", 0, true},
		{"1G.10GB+ME", "1g.10gb.me", 0, true},
		{"1g.10gb", "1g.10gb+me", 0, false},
		{"1g.10gb.me", "1g.10gb+me", draft.RulesProfilesAlike - 1, false},
	} {
		b := sharing(1, 7, "mig").Offer("paris/shared", Spec(func(s *v1alpha1.FlavorSpec) { s.GPU.Profile = c.have })).Intent("vision/a", wantsUnits(1, ""), GPU(func(g *v1alpha1.GPURequest) { g.Profile = c.want }))
		b.W.Rules = c.rules
		if d := Of(b.Plan(), "vision/a"); (d.Action == draft.Place) != c.fits {
			t.Errorf("%+v: %s %s", c, d.Action, d.Reason)
		}
	}
}

// Instances of MIG are booked by the node: a pod of four is not booked on three and three, and
// what begins lies on cards of the nodes on which it was booked.
func TestNodes_InstancesAreBooked(t *testing.T) {
	books := With(func(s *v1alpha1.IntentSpec) {
		s.Schedule = v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(Start.Add(24 * time.Hour)), Duration: v1alpha1.Duration{Duration: time.Hour}, Book: true}
	})
	b := partsOf("mig", 7, 3, 3).Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{Book: true} })
	p := b.Intent("vision/serve", wantsUnits(4, "mig"), books).Round()
	if d := Of(p, "vision/serve"); d.Rejected[match.ReqNode] != 1 || len(b.Contracts("vision/serve")) != 0 {
		t.Errorf("a pod of four: rejected %v", d.Rejected)
	}
	b.Intent("vision/serve", wantsUnits(4, "mig"), perPod(1, ""), books).Round()
	c := b.W.Ledger.ByIntent("vision", "serve")[0]
	if c.Status.Phase != v1alpha1.PhaseBooked || len(c.Spec.Nodes) != 2 || c.Spec.GPUs.Cards != nil {
		t.Fatalf("%s on %v, cards %v", c.Status.Phase, c.Spec.Nodes, c.Spec.GPUs.Cards)
	}
	b.Tick(24 * time.Hour).Round()
	c = b.W.Ledger.ByIntent("vision", "serve")[0]
	on := map[string]int64{}
	for _, u := range c.Spec.GPUs.Cards {
		on[u.Node] += u.Units
	}
	for _, n := range c.Spec.Nodes {
		if want := n.Resources[c.Spec.GPUs.ResourceName].Int64(); on[n.Node] != want {
			t.Errorf("%d instances on cards of %s, want %d", on[n.Node], n.Node, want)
		}
	}
	if c.Status.Phase != v1alpha1.PhaseReserved || len(on) != 2 {
		t.Errorf("%s on cards of %v", c.Status.Phase, on)
	}
	wantOnlyKeeps(t, b)
}
