package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// Domains may be of nodes: racks of which one offer has several. An offer is then in all of
// them, and what is placed in one lies on its nodes alone.

// holdsIn is whether nodes in the domains of rules hold a size of an offer as the pods of a
// class; nil where no rule is on nodes.
func holdsIn(r *Placer, s *match.Class, within []domain.Rule) func(*inventory.Offer, quantity.Vector) bool {
	within = slices.DeleteFunc(slices.Clone(within), func(x domain.Rule) bool { return x.Domain == "" || !OnNodes(r, x.Kind) })
	if len(within) == 0 || s == nil {
		return nil
	}
	return func(o *inventory.Offer, size quantity.Vector) bool {
		ask, ok := r.Match.Pods(s.Request, o, size)
		if !ok {
			return true
		}
		for i := range within {
			if ask.Only = within[i].Nodes(o); ask.Only != nil && !o.Nodes().Fits(size, ask) {
				return false
			}
		}
		return true
	}
}

// nodesFor are the nodes of an offer on which what a request places may lie; nil for all.
func nodesFor(r *Placer, j *draft.Job, q Request, o *inventory.Offer) func(node string) bool {
	if q.shared != nil && match.ByNode(o, q.shared.By, q.shared.Label) {
		return q.shared.Nodes(o)
	}
	w, ok := WithinOf(r, j.In)
	if !ok || q.in.how != keepsOne {
		return nil
	}
	return match.NodesIn(o, w.By, w.Label, q.in.domain)
}

// roomIn is how many replicas a candidate's offer has room for in a domain, n at the most.
func (x *wholeSearch) roomIn(s *match.Class, c *match.Candidate, domain string, n int) int {
	return layout.RoomFor(x.Match, s.Request, c, n, match.NodesIn(c.Offer, x.within.By, x.within.Label, domain))
}

// keptNodes are the nodes on which what a contract has may be put in place of others: those
// of the domain that it shares with its replicas, or has for itself; nil for any.
func keptNodes(r *Placer, j *draft.Job, c *v1alpha1.Contract, o *inventory.Offer) func(node string) bool {
	w, ok := WithinOf(r, j.In)
	if !ok || !w.Required || !match.ByNode(o, w.By, w.Label) {
		return nil
	}
	at := rules.DomainOf(&r.Draft, c, w.By, w.Label)
	if at == "" {
		at = home(r, j, w, nil, []*v1alpha1.Contract{c})
	}
	for i := 0; at == "" && i < len(c.Spec.Nodes); i++ { // of those of its nodes that are there
		if place := o.PlaceOf(w.Label, c.Spec.Nodes[i].Node); place != "" {
			at = o.Provider + "/" + place
		}
	}
	return match.NodesIn(o, w.By, w.Label, at)
}
