package ledger

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Growth is what an autoscaler could add to what a flavor may sell as it stands:
//
//	scalableTo − capacity × overcommit
//
// resource by resource, where that is more than nothing. Resources that the
// capacity does not limit need none, and parts of cards lie on cards that stand.
func Growth(o v1alpha1.OfferFigures) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for name, could := range o.ScalableTo {
		have, listed := o.Capacity[name]
		if !listed && slices.Contains(unlimitedWhenAbsent, name) {
			continue
		}
		if stands := scale(have, o.Overcommit, name); stands.Less(could) {
			out[name] = could.Sub(stands)
		}
	}
	return out
}

// Sellable is what may be sold of a flavor: what is Available, and what an
// autoscaler could add. (DESIGN's invariant 2 holds for the larger of what
// stands and what could.)
func Sellable(o v1alpha1.OfferFigures) v1alpha1.Resources {
	out := Available(o)
	for name, more := range Growth(o) {
		have, listed := out[name]
		if !listed { // what does not stand at all may be used or held already
			have = v1alpha1.Amount{}.Sub(o.Used[name]).Sub(o.Held[name]).Sub(o.Pool[name])
		}
		out[name] = have.Add(more)
	}
	return out
}

// HasCards reports whether a flavor has cards, or could get some.
func HasCards(s *v1alpha1.FlavorSpec) bool {
	return s.GPU != nil && (!s.Capacity[v1alpha1.GPU].IsZero() || !s.ScalableTo[v1alpha1.GPU].IsZero())
}

// scalable is what a flavor's figures say of autoscaling. Of what a pool's flavors
// have in common they can get no more than the one that says least, above what
// the one that has least stands at, so that none is oversold by another's growth.
func scalable(f *v1alpha1.Flavor, pool []Member) v1alpha1.Resources {
	if len(f.Spec.ScalableTo) == 0 {
		return nil
	}
	out := f.Spec.ScalableTo.Clone()
	if UnitsPerCard(f) > 1 {
		delete(out, v1alpha1.GPU)
	}
	if f.Spec.Pool == "" {
		return out
	}
	for _, name := range pooled {
		own, listed := sellable(f.Spec, name)
		could, said := out[name]
		if !said || !listed {
			continue
		}
		stands := own
		for _, m := range pool {
			if m.Flavor.Ref() == f.Ref() || !samePool(m.Flavor, f) {
				continue
			}
			theirs, limited := sellable(m.Flavor.Spec, name)
			if !limited {
				continue
			}
			if theirs.Less(stands) {
				stands = theirs
			}
			if to := m.Flavor.Spec.ScalableTo[name]; to.Less(could) {
				could = to
			}
		}
		out[name] = own
		if stands.Less(could) {
			out[name] = own.Add(could.Sub(stands))
		}
	}
	return out
}
