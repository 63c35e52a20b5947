package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// lackOnNodes marks the contracts of which a node cannot hold its part although their
// flavors have enough: those with a part on a node that is gone, and of a node that has less
// than was sold of it the ones that findExcess would mark of a flavor. They join those that
// are excess already, which free their parts.
func lackOnNodes(r *round, excess map[string]bool) {
	lacking := map[string]string{}
	if r.By(draft.RulesRemapped) {
		for _, o := range r.Inventory.Suspects() {
			if o.State == model.Fresh && o.Nodes() != nil {
				lackOnNodesOf(r, o, excess, lacking)
			}
		}
	}
	draft.Set(&r.Draft, &r.Lacking, lacking)
}

func lackOnNodesOf(r *round, o *inventory.Offer, excess map[string]bool, lacking map[string]string) {
	var list []*v1alpha1.Contract
	parts := map[string][]nodes.Part{}
	mark := func(c *v1alpha1.Contract, node, why string) {
		excess[c.Metadata.Name], lacking[c.Metadata.Name] = true, onnodes.Refusal(node, why)
	}
	for _, c := range o.Contracts {
		if c = r.Latest(c); !c.Status.Phase.Held() || len(c.Spec.Nodes) == 0 {
			continue
		}
		list, parts[c.Metadata.Name] = append(list, c), layout.PartsOf(r.Names, o, c)
		for _, p := range parts[c.Metadata.Name] {
			if !o.Nodes().Has(p.Node) && !excess[c.Metadata.Name] {
				mark(c, p.Node, "it is gone")
			}
		}
	}
	slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
		return cmp.Or(cmp.Compare(refusedFirst(r, b), refusedFirst(r, a)), cmp.Compare(r.Standing(a), r.Standing(b)),
			b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
	})
	o.Nodes().Below(func(node string, short quantity.Vector) {
		for _, marked := range [...]bool{true, false} {
			for _, c := range list {
				on := parts[c.Metadata.Name]
				at := slices.IndexFunc(on, func(p nodes.Part) bool { return p.Node == node })
				if at < 0 || excess[c.Metadata.Name] != marked || !on[at].Size.Relieves(short) {
					continue
				}
				if short = short.Sub(on[at].Size); !marked {
					mark(c, node, "it has less than was sold of it")
				}
			}
		}
	})
}
