package layout

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// RoomFor is how often a candidate's size fits its offer, n at the most, on nodes of only
// (nil for all). Cards that are sold in parts may hold less.
func RoomFor(m *match.Matcher, w *match.Request, c *match.Candidate, n int, only func(node string) bool) int {
	n = c.Offer.Free().Times(c.Size, n)
	if ask, ok := m.Pods(w, c.Offer, c.Size); ok && n > 0 && (c.Offer.Growth == nil || only != nil) {
		ask.Only = only
		return c.Offer.Nodes().Times(c.Size, ask, n)
	}
	return n
}

// RoomInAll is RoomFor as if nothing of the offer were held.
func RoomInAll(m *match.Matcher, w *match.Request, c *match.Candidate, n int, only func(node string) bool) int {
	n = c.Offer.Capacity.Times(c.Size, n)
	if ask, ok := m.Pods(w, c.Offer, c.Size); ok && n > 0 && (c.Offer.Growth == nil || only != nil) {
		ask.Only, ask.Cards = only, nil
		return c.Offer.Nodes().Empty().Times(c.Size, ask, n)
	}
	return n
}

// Lay are the nodes of a contract of a size of an offer, whose resources are written
// already. It takes the place of had (nil for none), and stays on its nodes where they hold
// it. Other nodes are those of only; nil for any. nil where nodes do not matter, or the offer
// has to grow.
func Lay(m *match.Matcher, r *draft.Draft, w *match.Request, o *inventory.Offer, size quantity.Vector, s *v1alpha1.ContractSpec, had *v1alpha1.Contract, only func(node string) bool) []v1alpha1.ContractNode {
	ask, ok := m.Pods(w, o, size)
	if !ok {
		return nil
	}
	ask.Only = only
	if had != nil && len(had.Spec.Nodes) == 0 && had.Spec.Stage != v1alpha1.StageReserve {
		return nil // its virtual nodes run: it stays without nodes until it is placed again
	}
	var parts, before []nodes.Part
	var held nodes.Holding
	if had != nil {
		before, held = PartsOf(r.Names, o, had), draft.HoldingOf(r, o, had.Metadata.Name, had)
	}
	switch axis := draft.OnAxis(r); {
	case len(before) > 0 && sum(before).Equal(size) && o.Nodes().Hosts(before, size, ask):
		parts = before
	case axis.HasBookings(o):
		free := axis.Nodes(o, r.Now, s.Term.End, nil)
		free.Book(&held, -1)
		parts = free.Pack(size, ask, on(before))
	default:
		o.Cards().Without(inventory.CardsOf(had), func() {
			o.Nodes().Without(&held, func() { parts = o.Nodes().Pack(size, ask, on(before)) })
		})
	}
	return inOrder(Written(r.Names, o, parts, s), had)
}

// inOrder are the nodes of a contract in the order in which it named them before, with the
// numbers that they had, where they are the same: its virtual nodes are named by these.
func inOrder(next []v1alpha1.ContractNode, had *v1alpha1.Contract) []v1alpha1.ContractNode {
	if had == nil || len(had.Spec.Nodes) != len(next) {
		return next
	}
	out := make([]v1alpha1.ContractNode, 0, len(next))
	for _, n := range had.Spec.Nodes {
		at := slices.IndexFunc(next, func(x v1alpha1.ContractNode) bool { return x.Node == n.Node })
		if at < 0 {
			return next
		}
		n.Resources = next[at].Resources
		out = append(out, n)
	}
	return out
}

// Remapped are the nodes of a contract with other nodes of its offer in place of those that
// are gone, that have too little for its part, or for which its provider refuses it; nil
// where there are none such, or nothing is free in their place. Each part that moves has a
// virtual node of its own, with the next number, and goes to nodes of only; nil for any. With
// them come the cards of those nodes, where the offer sells parts of cards.
func Remapped(r *draft.Draft, o *inventory.Offer, c *v1alpha1.Contract, only func(node string) bool) ([]v1alpha1.ContractNode, *v1alpha1.ContractGPU) {
	if !r.By(draft.RulesRemapped) || o == nil || o.State != model.Fresh || o.Blocked != "" || o.Nodes() == nil || len(c.Spec.Nodes) == 0 || o.Overdrawn() >= 0 {
		return nil, nil
	}
	before, shunned := PartsOf(r.Names, o, c), onnodes.RefusedFor(o.Flavor.Spec.Refused[c.Metadata.Name])
	var after []nodes.Part
	var cards func(node string, units int64) int64
	if o.Cards() != nil && !match.IsCut(o.Flavor.Spec.GPU) {
		cards = o.Cards().Times
	}
	if axis := draft.OnAxis(r); axis.HasBookings(o) {
		after = axis.Nodes(o, r.Now, c.Spec.Term.End, map[string]bool{c.Metadata.Name: true}).Remapped(before, shunned, only, cards)
	} else {
		held := draft.HoldingOf(r, o, c.Metadata.Name, c)
		o.Nodes().Without(&held, func() { after = o.Nodes().Remapped(before, shunned, only, cards) })
	}
	if after == nil || slices.EqualFunc(before, after, func(a, b nodes.Part) bool { return a.Node == b.Node }) {
		return nil, nil
	}
	out, last := slices.Clone(c.Spec.Nodes), int32(0)
	for i := range out {
		last = max(last, c.Spec.Part(i))
	}
	for i := range out {
		if out[i].Part = c.Spec.Part(i); out[i].Node != after[i].Node {
			last++
			out[i].Node, out[i].Part = after[i].Node, last
		}
	}
	gpus := c.Spec.GPUs
	if gpus != nil && o.Cards() != nil {
		moved := *gpus
		moved.Cards = match.CardsOn(o, out, gpus.Cards, cards == nil)
		gpus = &moved
	}
	return out, gpus
}

// on reports of a node whether parts lie there; nil where there are none.
func on(parts []nodes.Part) func(string) bool {
	if len(parts) == 0 {
		return nil
	}
	return func(node string) bool {
		return slices.ContainsFunc(parts, func(p nodes.Part) bool { return p.Node == node })
	}
}

func sum(parts []nodes.Part) (all quantity.Vector) {
	for _, p := range parts {
		all = all.Add(p.Size)
	}
	return all
}

// Written are parts as a contract names them, each with every key of its slice.
func Written(n *quantity.Names, o *inventory.Offer, parts []nodes.Part, s *v1alpha1.ContractSpec) (out []v1alpha1.ContractNode) {
	for _, p := range parts {
		part := inventory.Slice(n, p.Size, o.Flavor)
		for name := range s.Resources {
			part[name] = part[name].Add(v1alpha1.Amount{})
		}
		out = append(out, v1alpha1.ContractNode{Node: p.Node, Resources: part})
	}
	return out
}

// PartsOf are what a contract names of nodes, as its offer counts it.
func PartsOf(n *quantity.Names, o *inventory.Offer, c *v1alpha1.Contract) (out []nodes.Part) {
	as := v1alpha1.Contract{Spec: v1alpha1.ContractSpec{GPUs: c.Spec.GPUs}}
	for i := range c.Spec.Nodes {
		as.Spec.Resources = c.Spec.Nodes[i].Resources
		out = append(out, nodes.Part{Node: c.Spec.Nodes[i].Node, Size: inventory.Sold(n, &as, o.Flavor)})
	}
	return out
}

// Stays reports whether a contract lies on its nodes as the pods of a request want it:
// older contracts, which name none, are kept on their terms.
func Stays(m *match.Matcher, r *draft.Draft, w *match.Request, o *inventory.Offer, size quantity.Vector, c *v1alpha1.Contract) bool {
	ask, ok := m.Pods(w, o, size)
	return !ok || len(c.Spec.Nodes) == 0 || o.Nodes().Hosts(PartsOf(r.Names, o, c), size, ask)
}

// SameNodes reports whether a contract may become its next version where it is: virtual nodes
// that run are named and pinned by the nodes on which it lies, and what names nodes goes on
// naming some.
func SameNodes(r *draft.Draft, c, next *v1alpha1.ContractSpec) bool {
	if c.Stage == v1alpha1.StageReserve {
		return len(next.Nodes) > 0 || len(c.Nodes) == 0 || !r.By(draft.RulesNodesNamed)
	}
	return slices.EqualFunc(c.Nodes, next.Nodes, func(a, b v1alpha1.ContractNode) bool { return a.Node == b.Node && a.Part == b.Part })
}

// HostsInstead reports whether an offer's cards and nodes hold a size as if a contract were
// not there.
func HostsInstead(m *match.Matcher, r *draft.Draft, w *match.Request, o *inventory.Offer, size quantity.Vector, c *v1alpha1.Contract) (fits bool) {
	held := draft.HoldingOf(r, o, c.Metadata.Name, c)
	return match.HostsInstead(m, w, o, size, c, &held)
}

// askBy is how a size of an offer is made of pods by that of several alternatives which is
// of as many GPUs, else by the first.
func askBy(m *match.Matcher, alternatives []v1alpha1.ResourceRequest, o *inventory.Offer, size quantity.Vector) (nodes.Ask, bool) {
	if o.Nodes() == nil || len(alternatives) == 0 {
		return nodes.Ask{}, false
	}
	at := slices.IndexFunc(alternatives, func(q v1alpha1.ResourceRequest) bool {
		return q.GPU != nil && int64(q.GPU.Count) == size.At(quantity.GPU)
	})
	var w match.Request
	m.AskPods(&w, alternatives[max(at, 0)].PerPod)
	return m.Pods(&w, o, size)
}

// Until is the first instant of [now, to) at which a size does not fit an offer, and whether
// there is one: by its profile, or because no node that holds one of its pods is free of
// what others have booked.
func Until(m *match.Matcher, r *draft.Draft, p *booking.Profile, alternatives []v1alpha1.ResourceRequest, o *inventory.Offer, size quantity.Vector, to v1alpha1.Time, except map[string]bool) (at v1alpha1.Time, short bool) {
	at, short = p.Until(r.Now, to, size)
	ask, ok := askBy(m, alternatives, o, size)
	if short || !ok || o.Growth != nil {
		return at, short
	}
	for _, start := range p.Instants() {
		if !to.IsZero() && !start.Before(to.Time) {
			break
		}
		if !draft.OnAxis(r).Nodes(o, r.Now, v1alpha1.TimeOf(start.Add(time.Second)), except).Fits(size, ask) {
			return start, true
		}
	}
	return at, false
}

// Figures are what a decision records of the nodes on which its contract lies: what all
// contracts may have of each.
func Figures(o *inventory.Offer, on []v1alpha1.ContractNode) map[string]v1alpha1.Resources {
	if len(on) == 0 {
		return nil
	}
	h := ledger.NodesHeldOf(ledger.Member{Flavor: o.Flavor}, nil)
	out := make(map[string]v1alpha1.Resources, len(on))
	for i := range on {
		if r, known := h.Sellable(on[i].Node); known {
			out[on[i].Node] = r
		}
	}
	return out
}
