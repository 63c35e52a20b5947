package enforce

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// OfferOf is what a cluster's flavors, as they were last collected, have for a
// promise. given is what was granted by slice and may not be in the flavors yet.
func OfferOf(flavors []v1alpha1.Flavor, p *Promise, given map[string]Given) Offer {
	var of *v1alpha1.Flavor
	var pool []ledger.Member
	for i := range flavors {
		f := withGiven(&flavors[i], given)
		if f.Metadata.Name == p.Flavor {
			of = f
		}
		pool = append(pool, ledger.Member{Flavor: f})
	}
	if of == nil || len(of.Spec.NodeSelector) == 0 {
		return Offer{}
	}
	figures := ledger.Figures(ledger.Member{Flavor: of}, pool, p.Slice)
	free := ledger.AsSliced(ledger.Available(figures), of)
	return Offer{
		Known: true, Free: free, Growing: growing(of, p), Short: shortOf(of, p, given),
		NodeSelector: of.Spec.NodeSelector, Labels: LabelsOf(&of.Spec),
	}
}

// Given is what was granted to a slice.
type Given struct {
	// Flavor that it was granted of.
	Flavor string
	// Resources in the names that slices carry.
	Resources v1alpha1.Resources
	// Nodes of it, in those names.
	Nodes []v1alpha1.ContractNode
}

// shortOf is which node has not what a promise has of it beside the provider's own pods
// and what was granted to other slices, "" where all have. Of an overcommitted resource
// no node is short.
func shortOf(f *v1alpha1.Flavor, p *Promise, given map[string]Given) string {
	for _, part := range p.Nodes {
		if !onnodes.IsHash(part.Node) {
			continue // numbers are a file's: nobody here knows which nodes
		}
		free, is := freeOn(f, part.Node, p.Slice, given)
		if !is {
			return "node " + part.Node + " of contract " + p.Contract + " is not offered here as flavor " + p.Flavor
		}
		want := inFlavor(part.Resources, f)
		for name := range f.Spec.Overcommit {
			delete(want, name)
		}
		if lack := lacking(want, free); lack != "" {
			return fmt.Sprintf("node %s has %s of %s left, contract %s has %s of it there: other workloads came first",
				part.Node, free[lack].Canonical(lack), lack, p.Contract, want[lack].Canonical(lack))
		}
	}
	return ""
}

// freeOn is what of a node a slice may have, in the flavor's names.
func freeOn(f *v1alpha1.Flavor, node, slice string, given map[string]Given) (v1alpha1.Resources, bool) {
	if f.Spec.Nodes == nil {
		return nil, false
	}
	at := slices.IndexFunc(f.Spec.Nodes.Groups, func(g v1alpha1.NodeGroup) bool { return slices.Contains(g.Nodes, node) })
	if at < 0 {
		return nil, false
	}
	free := f.Spec.Nodes.Groups[at].Free
	if free == nil {
		free = f.Spec.Nodes.Groups[at].Shape
	}
	takes := map[string]v1alpha1.Resources{}
	for other, nodes := range f.Spec.HeldOn {
		takes[other] = nodes[node]
	}
	for other, g := range given {
		for _, part := range g.Nodes {
			if part.Node == node && g.Flavor == f.Metadata.Name {
				takes[other] = takes[other].Max(inFlavor(part.Resources, f))
			}
		}
	}
	for other, r := range takes {
		if other != slice {
			free = free.Sub(r)
		}
	}
	return free, true
}

// withGiven is a flavor that holds at least what was granted of it.
func withGiven(f *v1alpha1.Flavor, given map[string]Given) *v1alpha1.Flavor {
	out := *f
	copied := false
	for slice, g := range given {
		if g.Flavor != f.Metadata.Name {
			continue
		}
		if !copied {
			out.Spec.Held, copied = maps.Clone(f.Spec.Held), true
			if out.Spec.Held == nil {
				out.Spec.Held = map[string]v1alpha1.Resources{}
			}
		}
		out.Spec.Held[slice] = out.Spec.Held[slice].Max(inFlavor(g.Resources, f))
	}
	return &out
}

// inFlavor is a slice's resources in the names of its flavor.
func inFlavor(r v1alpha1.Resources, f *v1alpha1.Flavor) v1alpha1.Resources {
	name := ledger.GPUResource(f)
	out := r.Clone()
	amount, ok := r[name]
	if !ok {
		return out
	}
	delete(out, name)
	out[v1alpha1.GPU] = amount
	return out
}

// growing reports whether an autoscaler could make room for a promise.
func growing(f *v1alpha1.Flavor, p *Promise) bool {
	could := ledger.AsSliced(f.Spec.ScalableTo, f)
	if len(could) == 0 {
		return false
	}
	all := ledger.AsSliced(f.Spec.Capacity, f).Max(could)
	return lacking(p.Resources, all) == ""
}
