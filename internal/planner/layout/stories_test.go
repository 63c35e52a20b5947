package layout_test

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
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

const cards, rack = "nvidia.com/gpu", "topology.kubernetes.io/rack"

// node is one of a provider's: its own pods leave free cards of 8; one that is down is not
// reported.
type node struct {
	free int64
	rack string
	down bool
}

// story is a fleet whose providers tell their nodes, over some hours.
type story struct {
	*Builder
	t         *rapid.T
	providers []string
	nodes     map[string][]node
	// changed are the intents that were changed while they held something: that is kept where
	// it is, whatever they ask for now.
	changed map[string]bool
}

func newStory(t *rapid.T) *story {
	s := &story{Builder: New().Consumer("rome").Tenant("vision", "rome").Tenant("speech", "rome"), t: t, nodes: map[string][]node{}, changed: map[string]bool{}}
	s.providers = []string{"paris", "lyon", "oslo"}[:rapid.IntRange(1, 3).Draw(t, "providers")]
	s.Provider(s.providers...)
	for i, p := range s.providers {
		for range rapid.IntRange(1, 4).Draw(t, "nodes") {
			s.nodes[p] = append(s.nodes[p], node{free: s.free(), rack: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "rack")})
		}
		s.reports(p, Costs(fmt.Sprint(i+1)))
	}
	if rapid.Bool().Draw(t, "consolidates") {
		s.Fleet(func(f *v1alpha1.FleetSpec) {
			f.Consolidation = v1alpha1.Consolidation{Mode: "apply", Threshold: Money("0.1"), Hold: v1alpha1.Duration{Duration: time.Minute}}
		})
	}
	if rapid.Bool().Draw(t, "moves gangs") {
		s.Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.MoveAfter = v1alpha1.Duration{Duration: time.Hour} })
	}
	return s
}

func (s *story) free() int64 {
	return rapid.SampledFrom([]int64{0, 2, 4, 7, 8, 8}).Draw(s.t, "free")
}

// reports makes a provider's flavor of its nodes.
func (s *story) reports(p string, changes ...func(*model.Offer)) {
	s.Offer(p+"/h100", append([]func(*model.Offer){func(o *model.Offer) {
		n := int64(len(s.nodes[p]))
		Cards("nvidia-h100", int(8*n), "80Gi")(o)
		f, shape := &o.Flavor.Spec, Amounts("cpu=96 memory=1Ti pods=110 gpu=8")
		f.Nodes, f.Used, f.Capacity = &v1alpha1.FlavorNodes{}, v1alpha1.Resources{}, v1alpha1.Resources{}
		for i, at := range s.nodes[p] {
			if at.down {
				continue
			}
			for name, a := range shape {
				f.Capacity[name] = f.Capacity[name].Add(a)
			}
			left := shape.Clone()
			left[v1alpha1.GPU] = v1alpha1.AmountOf(at.free)
			f.Used[v1alpha1.GPU] = f.Used[v1alpha1.GPU].Add(v1alpha1.AmountOf(8 - at.free))
			g := v1alpha1.NodeGroup{Shape: shape, Free: left, Nodes: []string{hash(i)}}
			if at.rack != "" {
				g.Labels = map[string]string{rack: at.rack}
			}
			f.Nodes.Groups = append(f.Nodes.Groups, g)
		}
	}}, changes...)...)
}

func hash(i int) string { return fmt.Sprintf("n%013d", i) }

// ask adds an intent, or changes one.
func (s *story) ask() string {
	ref := rapid.SampledFrom([]string{"vision", "speech"}).Draw(s.t, "tenant") + fmt.Sprintf("/i%d", rapid.IntRange(0, 4).Draw(s.t, "intent"))
	s.changed[ref] = slices.ContainsFunc(s.Contracts(ref), func(c *v1alpha1.Contract) bool { return c.Status.Phase.Charged() })
	s.Intent(ref, Wants(rapid.SampledFrom([]int32{1, 2, 4, 8, 12}).Draw(s.t, "gpus")), Times(rapid.Int32Range(1, 3).Draw(s.t, "replicas")), With(func(in *v1alpha1.IntentSpec) {
		in.PerPod, in.Gang, in.Placement, in.Priority, in.Preemption = nil, nil, v1alpha1.Placement{}, 0, nil
		if rapid.IntRange(0, 2).Draw(s.t, "single pods") == 0 {
			in.PerPod = &v1alpha1.PodRequest{GPUs: 1}
		}
		in.Schedule.Duration.Duration = time.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(s.t, "hours")) * time.Hour
		switch rapid.IntRange(0, 3).Draw(s.t, "shares") {
		case 0:
			in.Gang = Ptr(true)
		case 1:
			in.Gang, in.Placement.Within = Ptr(true), &v1alpha1.Within{By: "label", Label: rack}
		}
		if rapid.IntRange(0, 2).Draw(s.t, "preempts") == 0 {
			in.Priority, in.Preemption = int32(rapid.IntRange(1, 9).Draw(s.t, "priority"))*10, &v1alpha1.Preemption{Preempts: "lower"} //nolint:gosec // small
		}
		in.Objective = rapid.SampledFrom([]v1alpha1.Objective{"", v1alpha1.Cost}).Draw(s.t, "objective")
	}))
	return "intent " + ref
}

// event changes something.
func (s *story) event() string {
	p := rapid.SampledFrom(s.providers).Draw(s.t, "provider")
	switch rapid.SampledFrom([]string{"ask", "ask", "ask", "remove", "deliver", "deliver", "own pods", "node", "heard", "drain"}).Draw(s.t, "event") {
	case "ask":
		return s.ask()
	case "remove":
		ref := rapid.SampledFrom([]string{"vision", "speech"}).Draw(s.t, "tenant") + fmt.Sprintf("/i%d", rapid.IntRange(0, 4).Draw(s.t, "intent"))
		s.Remove(ref)
		return "remove " + ref
	case "deliver":
		s.Deliver()
		return "deliver"
	case "own pods":
		i := rapid.IntRange(0, len(s.nodes[p])-1).Draw(s.t, "node")
		s.nodes[p][i].free = s.free()
		s.reports(p)
		return "own pods of " + p
	case "node":
		i := rapid.IntRange(0, len(s.nodes[p])-1).Draw(s.t, "node")
		s.nodes[p][i].down = !s.nodes[p][i].down
		s.reports(p)
		return "a node of " + p
	case "heard":
		s.reports(p, Heard(rapid.SampledFrom([]model.Freshness{model.Fresh, model.Fresh, model.Silent, model.Lost}).Draw(s.t, "state")))
		return p + " is heard otherwise"
	default:
		leave := v1alpha1.Time{}
		if rapid.Bool().Draw(s.t, "drained") {
			leave = v1alpha1.TimeOf(s.W.Now.Add(time.Hour))
		}
		s.reports(p, Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = leave }))
		return "drain of " + p
	}
}

// where is what a contract has of which nodes.
func where(c *v1alpha1.Contract) string {
	var out []string
	for _, n := range c.Spec.Nodes {
		out = append(out, n.Node+":"+n.Resources[cards].Canonical("gpu"))
	}
	slices.Sort(out)
	return c.Spec.Provider + " " + strings.Join(out, " ")
}

// check asks of each contract that the round placed, or laid on other nodes, whether these
// have room for all that is held there, and of the plan that its last check withdraws nothing.
func (s *story) check(p *planner.Plan, said string) {
	fail := func(format string, args ...any) {
		s.t.Helper()
		s.t.Fatalf("after %q: %s\n%s", said, fmt.Sprintf(format, args...), s.books())
	}
	for _, d := range p.Intents { // else the last check alone would hold all of this
		if d.Code == lifecycle.CodeInvariant {
			fail("%s/%s: %s", d.Tenant, d.Name, d.Reason)
		}
	}
	for i := range p.Contracts {
		was, c := p.Contracts[i].Before, p.Contracts[i].After
		if c == nil || !c.Status.Phase.Charged() || was != nil && where(was) == where(c) {
			continue
		}
		var told []ledger.Node
		for j := range s.W.Offers {
			if s.W.Offers[j].Flavor.Metadata.Namespace == c.Spec.Provider {
				told = ledger.NodesOf(s.W.Offers[j].Flavor)
			}
		}
		sum := int64(0)
		for _, part := range c.Spec.Nodes {
			sum += part.Resources[cards].Int64()
			at := slices.IndexFunc(told, func(n ledger.Node) bool { return n.Name == part.Node })
			if at < 0 {
				fail("%s lies on %s, which %s does not tell", c.Metadata.Name, part.Node, c.Spec.Provider)
			}
			if slices.ContainsFunc(wasOn(was), func(n v1alpha1.ContractNode) bool {
				return n.Node == part.Node && n.Resources.Equal(part.Resources)
			}) {
				continue // it stays there: own pods may have come later
			}
			held := int64(0)
			for other := range s.W.Ledger.Contracts() {
				if !other.Status.Phase.Held() || other.Spec.Provider != c.Spec.Provider {
					continue
				}
				for _, n := range other.Spec.Nodes {
					if n.Node == part.Node {
						held += n.Resources[cards].Int64()
					}
				}
			}
			if free := told[at].Sellable[v1alpha1.GPU].Int64(); held > free {
				fail("%s has %d cards of %s/%s, where %d are held of %d", c.Metadata.Name, part.Resources[cards].Int64(), c.Spec.Provider, part.Node, held, free)
			}
		}
		if sum != c.Spec.Resources[cards].Int64() {
			fail("%s has %d cards on nodes, and %d", c.Metadata.Name, sum, c.Spec.Resources[cards].Int64())
		}
	}
	s.gangsShare(p, fail)
}

func wasOn(c *v1alpha1.Contract) []v1alpha1.ContractNode {
	if c == nil {
		return nil
	}
	return c.Spec.Nodes
}

// gangsShare: what a round places of a gang is where the rest of it is.
func (s *story) gangsShare(p *planner.Plan, fail func(string, ...any)) {
	for _, in := range s.W.Intents {
		if in.Spec.Gang == nil || !*in.Spec.Gang {
			continue
		}
		placed := false
		for i := range p.Contracts {
			c := p.Contracts[i].After
			placed = placed || p.Contracts[i].Before == nil && c.Spec.Intent.Name == in.Metadata.Name && c.Metadata.Namespace == in.Metadata.Namespace
		}
		at := map[string]bool{}
		for _, c := range s.W.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if !c.Status.Phase.Charged() {
				continue
			}
			if in.Spec.Placement.Within == nil {
				at[c.Spec.Provider] = true
				continue
			}
			for _, n := range c.Spec.Nodes {
				at[c.Spec.Provider+"/"+s.rackOf(c.Spec.Provider, n.Node)] = true
			}
		}
		if placed && len(at) > 1 && !s.changed[in.Metadata.Namespace+"/"+in.Metadata.Name] {
			fail("%s/%s is in %v", in.Metadata.Namespace, in.Metadata.Name, at)
		}
	}
}

func (s *story) rackOf(provider, name string) string {
	for i, n := range s.nodes[provider] {
		if hash(i) == name {
			return n.rack
		}
	}
	return "none"
}

// books are the contracts that hold anything, one a line, and the nodes.
func (s *story) books() string {
	var b strings.Builder
	for _, p := range s.providers {
		fmt.Fprintf(&b, "%s: %+v\n", p, s.nodes[p])
	}
	for c := range s.W.Ledger.Contracts() {
		if c.Status.Phase.Held() {
			fmt.Fprintf(&b, "%s %v on %s: %s\n", c.Metadata.Name, c.Status.Phase, where(c), c.Status.Why())
		}
	}
	return b.String()
}

// TestNodes_NoCardIsSoldTwiceInAnyStory: over rounds in which intents come, change and go,
// nodes and providers are lost and return, own pods come, others preempt and consolidate, no
// two contracts are given the same cards of a node, and what is placed of a gang is in its
// domain.
func TestNodes_NoCardIsSoldTwiceInAnyStory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t)
		for range rapid.IntRange(2, 12).Draw(t, "length") {
			said := s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 600, 2 * 3600}).Draw(t, "seconds")) * time.Second)
			p := s.Round()
			s.check(p, said)
		}
	})
}
