package enforce

import (
	"maps"

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
		Known: true, Free: free, Growing: growing(of, p),
		NodeSelector: of.Spec.NodeSelector, Labels: LabelsOf(&of.Spec),
	}
}

// Given is what was granted to a slice.
type Given struct {
	// Flavor that it was granted of.
	Flavor string
	// Resources in the names that slices carry.
	Resources v1alpha1.Resources
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
	amount, ok := r[name]
	if !ok {
		return r
	}
	out := r.Clone()
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
