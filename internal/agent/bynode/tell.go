package bynode

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Host is one node with something of a flavor, all amounts in the flavor's names.
type Host struct {
	// Name of the node, and all its labels.
	Name   string
	Labels map[string]string
	// Offered: the node belongs to the flavor; InService: something new may run on it.
	Offered, InService bool
	// Allocatable is what the node has for pods, Own what the provider's pods have of it.
	Allocatable, Own v1alpha1.Resources
	// Runs is what slices' pods have of it, by slice.
	Runs map[string]v1alpha1.Resources
}

// Runs is what pods have of nodes: by node and slice, "" for the provider's own.
type Runs map[string]map[string]v1alpha1.Resources

// Add counts what a slice's pod takes of a node.
func (on Runs) Add(node, slice string, r v1alpha1.Resources) {
	if on[node] == nil {
		on[node] = map[string]v1alpha1.Resources{}
	}
	on[node][slice] = on[node][slice].Add(r)
}

// Piece is what a contract has of nodes by the ledger.
type Piece struct {
	Contract string
	// Slice as in held.
	Slice string
	// Priority and Start say whose piece is whose, where not all are there.
	Priority int32
	Start    v1alpha1.Time
	// Nodes by hash, amounts in the flavor's names.
	Nodes map[string]v1alpha1.Resources
	// Ends: it is being released, and holds what it has until it is gone.
	Ends bool
}

// Flavor is what is known of a flavor's nodes.
type Flavor struct {
	// Hosts are its nodes, and others on which its slices have pods.
	Hosts []Host
	// Held is the flavor's, by slice.
	Held map[string]v1alpha1.Resources
	// Pieces of contracts.
	Pieces []Piece
	// Overcommitted resources are sold more than once: no node is short of them.
	Overcommitted func(name string) bool
	// Accelerator is the flavor's name of what it is sold for.
	Accelerator string
	// MaxPieces is how many pieces of all slices on nodes are reported at the most.
	MaxPieces int
}

// UnitOf is what a flavor is sold for by the node: its cards, else the first by name of its
// other accelerators, such as google.com/tpu. "" where it has none: it stays a pool.
func UnitOf(s *v1alpha1.FlavorSpec) string {
	if s.GPU != nil {
		return v1alpha1.GPU
	}
	for _, name := range s.Capacity.Names() {
		if !s.Capacity[name].IsZero() && accelerators.Is(name, nil) {
			return name
		}
	}
	return ""
}

// Told is what is reported of a flavor's nodes.
type Told struct {
	Nodes  *v1alpha1.FlavorNodes
	HeldOn map[string]map[string]v1alpha1.Resources
	// Short says of contracts why not all of their pieces are there, with the node's hash.
	Short map[string]string
}

// Tell makes the report of a flavor's nodes.
func (h *Hasher) Tell(f Flavor) Told {
	var offered []Host
	byHash := map[string]*Host{}
	for i := range f.Hosts {
		host := &f.Hosts[i]
		byHash[h.Of(host.Name)] = host
		if host.Offered {
			offered = append(offered, *host)
		}
	}
	return Told{
		Nodes:  &v1alpha1.FlavorNodes{Groups: h.groups(offered, f.named())},
		HeldOn: h.heldOn(&f),
		Short:  short(&f, byHash),
	}
}

// named are the hashes of which contracts have pieces.
func (f *Flavor) named() map[string]bool {
	out := map[string]bool{}
	for _, p := range f.Pieces {
		for hash := range p.Nodes {
			out[hash] = true
		}
	}
	return out
}

// groups are the nodes that bear their hash, equal ones together, in a stable order.
func (h *Hasher) groups(hosts []Host, named map[string]bool) []v1alpha1.NodeGroup {
	keys := differing(hosts)
	byText := map[string]*v1alpha1.NodeGroup{}
	for i := range hosts {
		host := &hosts[i]
		hash := h.Of(host.Name)
		if host.Labels[v1alpha1.LabelNode] != hash || !host.InService && len(host.Runs) == 0 && !named[hash] {
			continue
		}
		shape := host.shape()
		g := v1alpha1.NodeGroup{Shape: shape, Free: left(shape, host.Own)}
		if g.Free.Equal(shape) {
			g.Free = nil // absent: all of it
		}
		for _, key := range keys {
			if value, has := host.Labels[key]; has && value != host.Name {
				if g.Labels == nil {
					g.Labels = map[string]string{}
				}
				g.Labels[key] = value
			}
		}
		text := fmt.Sprint(g.Shape.Canonical(), g.Free.Canonical(), g.Labels) // maps print in order
		if byText[text] == nil {
			byText[text] = &g
		}
		byText[text].Nodes = append(byText[text].Nodes, hash)
	}
	var out []v1alpha1.NodeGroup
	for _, g := range byText {
		slices.Sort(g.Nodes)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b v1alpha1.NodeGroup) int { return strings.Compare(a.Nodes[0], b.Nodes[0]) })
	return out
}

// shape is what there is of a host: out of service, what runs there.
func (h *Host) shape() v1alpha1.Resources {
	if h.InService {
		return h.Allocatable
	}
	runs := h.Own
	for _, r := range h.Runs {
		runs = runs.Add(r)
	}
	out := make(v1alpha1.Resources, len(h.Allocatable))
	for name, has := range h.Allocatable {
		if runs[name].Less(has) {
			has = runs[name]
		}
		out[name] = has
	}
	return out
}

// left is what own pods leave, name by name of the shape, never below nothing.
func left(shape, own v1alpha1.Resources) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(shape))
	for name, has := range shape {
		out[name] = has.Sub(own[name]).Max(v1alpha1.Amount{})
	}
	return out
}

// heldOn is what slices have of nodes: what their pods have, and at least the pieces of
// contracts that hold anything yet. It is never more, all nodes together, than what a slice
// holds: pods may be where its contract has no piece, and those are not held twice.
func (h *Hasher) heldOn(f *Flavor) map[string]map[string]v1alpha1.Resources {
	out := map[string]map[string]v1alpha1.Resources{}
	add := func(slice, hash string, r v1alpha1.Resources) {
		held, holds := f.Held[slice]
		for node, other := range out[slice] {
			if node != hash {
				held = held.Sub(other)
			}
		}
		if r = out[slice][hash].Max(within(r, held)); !holds || len(r) == 0 {
			return
		}
		if out[slice] == nil {
			out[slice] = map[string]v1alpha1.Resources{}
		}
		out[slice][hash] = r
	}
	for i := range f.Hosts {
		for slice, r := range f.Hosts[i].Runs { // each slice once a host: in any order
			add(slice, h.Of(f.Hosts[i].Name), r)
		}
	}
	for _, p := range f.Pieces {
		for _, hash := range slices.Sorted(maps.Keys(p.Nodes)) {
			add(p.Slice, hash, p.Nodes[hash])
		}
	}
	bound(out, f.MaxPieces)
	if len(out) == 0 {
		return nil
	}
	return out
}

// bound leaves out what the slices on the most nodes have of them, until there are no more
// than so many pieces: a report with more is refused whole. What such slices hold is still
// reported of the flavor, and the ledger knows on which nodes their contracts lie.
func bound(heldOn map[string]map[string]v1alpha1.Resources, most int) {
	pieces := PiecesOf(heldOn)
	if pieces <= most {
		return
	}
	widest := slices.SortedFunc(maps.Keys(heldOn), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(heldOn[b]), len(heldOn[a])), strings.Compare(a, b))
	})
	for _, slice := range widest {
		if pieces <= most {
			return
		}
		pieces -= len(heldOn[slice])
		delete(heldOn, slice)
	}
}

// PiecesOf is how many pieces of all slices on nodes are reported.
func PiecesOf(heldOn map[string]map[string]v1alpha1.Resources) (n int) {
	for _, nodes := range heldOn {
		n += len(nodes)
	}
	return n
}

// within is r without what is nothing, and no more than most.
func within(r, most v1alpha1.Resources) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for name, a := range r {
		if most[name].Less(a) {
			a = most[name]
		}
		if !a.IsZero() {
			out[name] = a
		}
	}
	return out
}

// claim is one contract's piece of one node.
type claim struct {
	*Piece
	part v1alpha1.Resources
	// runs: its pods have all accelerators of it.
	runs bool
}

// short finds the contracts whose pieces are not all there. On each node first come those
// whose pods run, then the higher priority, then the older.
func short(f *Flavor, byHash map[string]*Host) map[string]string {
	byNode := map[string][]claim{}
	for i := range f.Pieces {
		p := &f.Pieces[i]
		for hash, part := range p.Nodes {
			c := claim{Piece: p, part: part}
			if host := byHash[hash]; host != nil {
				has, needs := host.Runs[p.Slice][f.Accelerator], part[f.Accelerator]
				c.runs = !needs.IsZero() && !has.Less(needs)
			}
			byNode[hash] = append(byNode[hash], c)
		}
	}
	out := map[string]string{}
	for _, hash := range slices.Sorted(maps.Keys(byNode)) {
		claims, host := byNode[hash], byHash[hash]
		slices.SortFunc(claims, func(a, b claim) int {
			if a.runs != b.runs {
				return map[bool]int{true: -1, false: 1}[a.runs]
			}
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Start.Compare(b.Start.Time), strings.Compare(a.Contract, b.Contract))
		})
		var free v1alpha1.Resources
		if host != nil && host.Offered && host.InService {
			free = left(host.Allocatable, host.Own)
		}
		for _, c := range claims {
			why := ""
			switch {
			case free != nil:
				why = f.lacks(free, c)
			case c.runs: // it stays where it is for as long as it runs
			case host == nil:
				why = "it is gone"
			case !host.Offered:
				why = "it is not offered any more"
			default:
				why = "it is out of service"
			}
			if why != "" && !c.Ends && out[c.Contract] == "" {
				out[c.Contract] = onnodes.Refusal(hash, why)
			}
			if why == "" && free != nil {
				free = free.Sub(c.part)
			}
		}
	}
	return out
}

// lacks is why a piece is not there, "" where it is.
func (f *Flavor) lacks(free v1alpha1.Resources, c claim) string {
	for _, name := range c.part.Names() {
		has, listed := free[name]
		if f.Overcommitted(name) || !listed && onnodes.Unlimited(name) || !has.Less(c.part[name]) {
			continue
		}
		return fmt.Sprintf("%s of %s %s are left there for contract %s: the provider's own pods came later",
			has.Max(v1alpha1.Amount{}).Canonical(name), c.part[name].Canonical(name), name, c.Contract)
	}
	return ""
}
