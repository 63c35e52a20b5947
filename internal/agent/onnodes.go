package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/agent/bynode"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// onNodes reports flavors with accelerators node by node (package bynode).
func (c *collector) onNodes() {
	c.next.unlabelled, c.next.short = map[string]string{}, map[string]string{}
	if c.state.Hasher == nil {
		return
	}
	pieces := onnodes.MaxPieces // of all flavors of the report
	for _, f := range c.flavors {
		unit := bynode.UnitOf(&f.Spec)
		if f.group == noGroup || unit == "" {
			continue
		}
		for _, n := range c.groups[f.group].nodes {
			if hash := c.state.Hasher.Of(n.Name); n.Labels[v1alpha1.LabelNode] != hash {
				c.next.unlabelled[n.Name] = hash
			}
		}
		told := c.state.Hasher.Tell(bynode.Flavor{
			Hosts: c.hostsOf(f), Held: f.Spec.Held, Pieces: c.piecesOf(f), Accelerator: unit, MaxPieces: pieces,
			Overcommitted: func(name string) bool { _, is := f.Spec.Overcommit[name]; return is },
		})
		f.Spec.Nodes, f.Spec.HeldOn = told.Nodes, told.HeldOn
		pieces -= bynode.PiecesOf(told.HeldOn)
		maps.Copy(c.next.short, told.Short)
	}
}

// hostsOf are a flavor's nodes, and others on which slices of it have pods.
func (c *collector) hostsOf(f *offered) []bynode.Host {
	var out []bynode.Host
	l := &c.load[f.group]
	inNames := func(r v1alpha1.Resources) v1alpha1.Resources {
		r = inFlavor(r, f.Spec.GPU, true)
		maps.DeleteFunc(r, func(name string, _ v1alpha1.Amount) bool { _, has := f.Spec.Capacity[name]; return !has })
		return r
	}
	for _, n := range c.groups[f.group].nodes {
		host := bynode.Host{Name: n.Name, Labels: n.Labels, Offered: true, InService: inService(n), Allocatable: inNames(amounts(n.Status.Allocatable)), Runs: map[string]v1alpha1.Resources{}}
		for slice, r := range l.on[n.Name] {
			switch {
			case slice == "":
				host.Own = inNames(r)
			case c.hostOf(f.group, c.next.home[slice], l.slices[slice]) == f.Metadata.Name:
				host.Runs[slice] = inNames(r)
			}
		}
		out = append(out, host)
	}
	for _, node := range slices.Sorted(maps.Keys(c.strayOn)) {
		host := bynode.Host{Name: node, Runs: map[string]v1alpha1.Resources{}}
		for slice, r := range c.strayOn[node] {
			if c.next.home[slice] == f.Metadata.Name {
				host.Runs[slice] = inNames(r)
			}
		}
		if len(host.Runs) > 0 {
			out = append(out, host)
		}
	}
	return out
}

// piecesOf are what contracts have of a flavor's nodes by the ledger.
func (c *collector) piecesOf(f *offered) []bynode.Piece {
	var out []bynode.Piece
	for i := range c.state.Promises {
		p := &c.state.Promises[i]
		piece := bynode.Piece{Contract: p.Contract, Slice: heldName(p.Slice), Priority: p.Priority, Start: p.Start, Ends: !p.Standing, Nodes: map[string]v1alpha1.Resources{}}
		for _, part := range p.Nodes {
			if p.Flavor == f.Metadata.Name && onnodes.IsHash(part.Node) {
				piece.Nodes[part.Node] = inHeld(part.Resources, f.Spec.GPU)
			}
		}
		if len(piece.Nodes) > 0 {
			out = append(out, piece)
		}
	}
	return out
}

// hashFrom starts reporting nodes one by one, if it is asked for and the agent may label
// them and read what their hashes are salted with.
func (a *agent) hashFrom(ctx context.Context) error {
	if !a.ReportNodes || a.hasher.Load() != nil {
		return nil
	}
	for _, need := range bynode.Needs() {
		if ok, err := a.allowed(ctx, need); !ok || err != nil {
			a.labeler.Lacks(need, err)
			return err
		}
	}
	hasher, err := bynode.ReadHasher(ctx, a.mgr.GetAPIReader())
	if err != nil {
		return err
	}
	a.hasher.Store(hasher)
	a.touch()
	a.Log.Info("reporting nodes one by one", "label", v1alpha1.LabelNode)
	return nil
}
