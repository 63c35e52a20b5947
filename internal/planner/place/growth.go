package place

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Scaled is what of a size an offer has yet to add, without what a contract that
// goes has of it; nil for nothing.
func (r *Placer) Scaled(o *inventory.Offer, size, had quantity.Vector) v1alpha1.Resources {
	more := o.Unbuilt(size, had)
	if more == nil {
		return nil
	}
	return r.Names.Resources(more)
}

// ScaledText states what an autoscaler has to add for an intent's new contracts.
func ScaledText(lines []draft.ContractLine) string {
	sum := v1alpha1.Resources{}
	for i := range lines {
		if a := lines[i].Action; a == draft.Place || a == draft.Move || a == draft.Resize {
			sum = sum.Add(lines[i].Scaled)
		}
	}
	if len(sum) == 0 {
		return ""
	}
	return "the provider's autoscaler has to add " + AmountsText(sum)
}

// AmountsText is amounts in words: "4 GPUs, 16 cpu".
func AmountsText(res v1alpha1.Resources) string {
	text := ""
	if n := res[v1alpha1.GPU]; n.Int64() == 1 {
		text = "1 GPU"
	} else if !n.IsZero() {
		text = n.Canonical(v1alpha1.GPU) + " GPUs"
	}
	for _, name := range res.Names() {
		if name == v1alpha1.GPU {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += res[name].Canonical(name) + " " + name
	}
	return text
}
