package rules

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// domainOfNodes is the domain by a label of nodes in which all of a contract's are, "" where
// they are in several, or in none.
func domainOfNodes(o *inventory.Offer, c *v1alpha1.Contract, label string) string {
	at := ""
	for i := range c.Spec.Nodes {
		place := o.PlaceOf(label, c.Spec.Nodes[i].Node)
		if place == "" || at != "" && place != at {
			return ""
		}
		at = place
	}
	if at == "" {
		return ""
	}
	return o.Provider + "/" + at
}

// OnGoneNode reports whether a contract that stays lies on a node that its offer does not
// tell: in which of its nodes' domains that was, nobody knows until it returns, or the
// contract goes elsewhere. Meanwhile nothing is placed in another.
func OnGoneNode(r *draft.Draft, c *v1alpha1.Contract, by string) bool {
	o := r.OfferOf(c)
	return by == "label" && o != nil && o.Nodes() != nil && slices.ContainsFunc(c.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return !o.Nodes().Has(n.Node) })
}

// Strays reports whether a contract lies on nodes of another domain than the one that
// replicas share, of which its offer has several. What names no nodes is kept on its terms;
// where a node that is gone was nobody knows, and what lies there stays, unless all of the
// intent goes to one domain (whole).
func (x *Set) Strays(r *draft.Draft, o *inventory.Offer, c *v1alpha1.Contract, whole bool) bool {
	if x == nil || len(c.Spec.Nodes) == 0 || !r.By(draft.RulesEditsInDomain) {
		return false
	}
	return slices.ContainsFunc(x.Within, func(w domain.Rule) bool {
		return w.Domain != "" && match.ByNode(o, w.By, w.Label) && domainOfNodes(o, c, w.Label) != w.Domain && (whole || !OnGoneNode(r, c, w.By))
	})
}

// Pooled reports whether contracts of a class name no nodes, so that they are in no domain of
// nodes: it asks for no accelerators.
func Pooled(r *draft.Draft, s *match.Class) bool {
	return r.By(draft.RulesPooledNowhere) && s != nil && !s.Request.Accelerated()
}
