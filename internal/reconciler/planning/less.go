package planning

import (
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// less reports whether any of a provider's offers has less than it had, or is not what it
// was: it does not sell any more, has less capacity, more of it is used or held, on some
// node too, contracts are refused that were not, or its price, place or facts are others.
// More room is no reason for another plan, nor is what contracts really use: that changes
// with every report.
func less(was, is []*model.Offer) bool {
	now := make(map[string]*model.Offer, len(is))
	for _, o := range is {
		now[o.Flavor.Metadata.Name] = o
	}
	for _, old := range was {
		o := now[old.Flavor.Metadata.Name]
		if o == old || old.State != model.Fresh {
			continue
		}
		if o == nil || o.State != model.Fresh || other(old, o) || lacks(&old.Flavor.Spec, &o.Flavor.Spec) {
			return true
		}
	}
	return false
}

// other reports whether an offer differs in what neither grows nor shrinks. It asks for all
// fields but those of lacks and those by which nothing is decided, so that a new one counts.
func other(was, is *model.Offer) bool {
	same := func(o *model.Offer) any {
		facts := o.Flavor.Spec
		facts.Capacity, facts.Used, facts.Held, facts.HeldOn, facts.Nodes, facts.Refused, facts.Cordon = nil, nil, nil, nil, nil, nil, false
		facts.Usage, facts.Endpoint = nil, ""
		return []any{facts, o.Price, o.Location, o.Static}
	}
	return !reflect.DeepEqual(same(was), same(is))
}

// lacks reports whether a flavor sells less than it did.
func lacks(was, is *v1alpha1.FlavorSpec) bool {
	if is.Cordon && !was.Cordon || !is.Capacity.Covers(was.Capacity) || !was.Used.Covers(is.Used) || fewer(was.Nodes, is.Nodes) {
		return true
	}
	for contract, held := range is.Held {
		if !was.Held[contract].Covers(held) {
			return true
		}
	}
	for contract, nodes := range is.HeldOn {
		for node, held := range nodes {
			if !was.HeldOn[contract][node].Covers(held) {
				return true
			}
		}
	}
	for contract := range is.Refused {
		if _, before := was.Refused[contract]; !before {
			return true
		}
	}
	return false
}

// fewer reports whether nodes have less free than they had, or other labels, or are gone.
func fewer(was, is *v1alpha1.FlavorNodes) bool {
	if was == nil || is == nil {
		return was != is
	}
	if is.Count < was.Count || !is.Size.Covers(was.Size) || (len(was.Groups) == 0) != (len(is.Groups) == 0) {
		return true
	}
	now := map[string]*v1alpha1.NodeGroup{}
	for i := range is.Groups {
		for _, node := range is.Groups[i].Nodes {
			now[node] = &is.Groups[i]
		}
	}
	for i := range was.Groups {
		g := &was.Groups[i]
		for _, node := range g.Nodes {
			n := now[node]
			if n == nil || !n.Shape.Covers(g.Shape) || !free(n).Covers(free(g)) || !reflect.DeepEqual(n.Labels, g.Labels) {
				return true
			}
		}
	}
	return false
}

// free is what the provider's own pods leave of a group's nodes.
func free(g *v1alpha1.NodeGroup) v1alpha1.Resources {
	if g.Free == nil {
		return g.Shape
	}
	return g.Free
}
