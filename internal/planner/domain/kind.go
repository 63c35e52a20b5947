package domain

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Kind is the kind of domain that replicas share.
type Kind struct {
	By, Label string
	Required  bool
	// Pooled: of whole offers alone, and not of single nodes.
	Pooled bool
}

// String is the kind for people.
func (w *Kind) String() string { return match.KindOf(w.By, w.Label) }

// All says that all are in one domain, for people.
func (w *Kind) All(name string) string { return "all in " + w.String() + " " + name }

// At are the domains in which an offer is: several where its nodes are in several.
func (w *Kind) At(o *inventory.Offer) []string {
	if w.Pooled && match.ByNode(o, w.By, w.Label) {
		return nil
	}
	return match.Domains(o, w.By, w.Label)
}

// Of is the kind of domain that an intent's replicas share under a fleet's policy; false
// where they may be anywhere.
func Of(fleet *v1alpha1.FleetSpec, in *model.Intent) (w Kind, ok bool) {
	if in == nil || in.Metadata.Namespace == v1alpha1.FleetTenant {
		return w, false
	}
	p := &in.Spec.Placement
	if own := p.Within; own != nil {
		return Kind{By: own.By, Label: own.Label, Required: own.Policy != v1alpha1.WithinPreferred}, own.Policy != v1alpha1.WithinNone && own.By != ""
	}
	w = Kind{By: "provider", Required: true}
	if d := fleet.Defaults.Within; d != nil {
		w = Kind{By: d.By, Label: d.Label, Required: d.Policy != v1alpha1.WithinPreferred}
		if d.Policy == v1alpha1.WithinNone || d.By == "" {
			return w, false
		}
	}
	if in.Spec.Gang != nil && !*in.Spec.Gang {
		return w, false
	}
	for i := range p.Spread {
		if p.Spread[i].Contradicts(w.By, w.Label) {
			return w, false
		}
	}
	if in.Spec.Gang == nil || len(p.Spread) > 0 || in.Spec.Split != nil {
		w.Required = false
	}
	return w, true
}

// Rule is one rule on the domain of a replica.
type Rule struct {
	Kind
	// Domain is the one, "" for any.
	Domain string
	// Nowhere: there is none for all. Said is why.
	Nowhere bool
	Said    string
}

// Breaks reports whether an offer is in no domain, or in another.
func (x *Rule) Breaks(o *inventory.Offer) bool {
	at := x.At(o)
	return x.Nowhere || len(at) == 0 || x.Domain != "" && !slices.Contains(at, x.Domain)
}

// Nodes are the nodes of an offer that are in the rule's domain; nil for all.
func (x *Rule) Nodes(o *inventory.Offer) func(node string) bool {
	return match.NodesIn(o, x.By, x.Label, x.Domain)
}

// Detail is how an offer breaks it.
func (x *Rule) Detail(o *inventory.Offer) string {
	switch {
	case x.Said != "":
		return x.Said
	case x.Pooled && match.ByNode(o, x.By, x.Label):
		return "only its nodes have " + x.String() + ", and what asks for no accelerator is not kept to nodes"
	case len(x.At(o)) == 0:
		return "it has no " + x.String()
	}
	return "its replicas share " + x.String() + " " + x.Domain
}

// Home is the domain with the most, the first by name of several; "" for none.
func Home(count map[string]int) string {
	best := ""
	for d, n := range count {
		if d != "" && (best == "" || n > count[best] || n == count[best] && d < best) {
			best = d
		}
	}
	return best
}
