package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Capacity that does not stand (spec.scalableTo of a flavor): what a provider's
// autoscaler makes when pods ask for it. It is sold like any other, up to
// scalableTo, but only where what stands does not do: an offer that would have
// to grow goes after all that need not, whatever their scores, and no contract
// is moved to one because it is cheaper. What of a contract did not stand when
// it was decided is recorded with it (decision.scaled), and said in its reason.

// grow notes what an autoscaler could add to an offer; what is free counts it
// once the offer's risk is known (assess).
func (r *round) grow(o *offer, figures v1alpha1.OfferFigures) {
	if o.growth != nil {
		o.capacity = o.capacity.Sub(o.growth)
		o.growth, o.scalable = nil, nil
	}
	if len(figures.ScalableTo) == 0 {
		return
	}
	if more := r.names.VectorOf(ledger.Growth(figures)); !more.Within(nil) {
		o.growth, o.scalable = more, figures.ScalableTo
		o.capacity = o.capacity.Add(more)
	}
}

// scales reports whether an offer would have to grow to hold a size.
func (o *offer) scales(size quantity.Vector) bool {
	if o.growth == nil {
		return false
	}
	for i, n := range size {
		if n > 0 && n > o.free.At(i)-o.growth.At(i) {
			return true
		}
	}
	return false
}

// scaled is what of a size does not stand on an offer, beside what a contract
// that goes has of it; nil for nothing.
func (r *round) scaled(o *offer, size, had quantity.Vector) v1alpha1.Resources {
	if o.growth == nil {
		return nil
	}
	var out quantity.Vector
	for i, n := range size {
		if stands := max(o.free.At(i)-o.growth.At(i)+had.At(i), 0); n > stands {
			out = out.Set(i, n-stands)
		}
	}
	if out == nil {
		return nil
	}
	return r.names.Resources(out)
}

// scaledText says what an autoscaler has to add for an intent's new contracts.
func scaledText(lines []ContractLine) string {
	sum := v1alpha1.Resources{}
	for i := range lines {
		if a := lines[i].Action; a == Place || a == Move || a == Resize {
			sum = sum.Add(lines[i].Scaled)
		}
	}
	if len(sum) == 0 {
		return ""
	}
	return "the provider's autoscaler has to add " + amountsText(sum)
}

// amountsText is amounts in words: "4 GPUs, 16 cpu".
func amountsText(res v1alpha1.Resources) string {
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
