package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Accelerators are left to who asks for them: an offer that has some is no candidate for
// a request of none, unless the intent allows it, and then the last of those that fit.
// What is sold of an offer because of its partition alone is never an accelerator. And
// none is sold for nothing: what an offer names no price for is not for sale (price.go).

// isAccelerator reports whether a resource is one.
func (m *Matcher) isAccelerator(name string) bool {
	is, known := m.accelerators[name]
	if !known {
		is = accelerators.Is(name, m.facts.Fleet.Accelerators)
		m.accelerators[name] = is
	}
	return is
}

// hasAccelerators reports whether an offer has any, or could grow to.
func (m *Matcher) hasAccelerators(o *inventory.Offer) bool {
	for _, list := range [...]v1alpha1.Resources{o.Flavor.Spec.Capacity, o.Flavor.Spec.ScalableTo} {
		for name, a := range list {
			if !a.IsZero() && m.isAccelerator(name) {
				return true
			}
		}
	}
	return false
}

// asksAccelerators reports whether a request asks for any.
func (m *Matcher) asksAccelerators(w *Request) bool {
	if w.GPU != nil {
		return true
	}
	for _, i := range w.extended {
		if m.isAccelerator(m.facts.Names.Name(i)) {
			return true
		}
	}
	return false
}

// Accelerated reports whether a request asks for accelerators.
func (w *Request) Accelerated() bool { return w.accelerated }

// unasked reports whether an offer has accelerators and the request asks for none.
func (m *Matcher) unasked(w *Request, o *inventory.Offer) bool {
	return m.facts.Asked && !w.accelerated && m.hasAccelerators(o)
}

// LeftToOthers reports whether an offer is not for an intent because it has accelerators
// that the intent does not ask for.
func (m *Matcher) LeftToOthers(w *Request, o *inventory.Offer) bool {
	return m.unasked(w, o) && !w.Intent.Spec.Placement.AllowAccelerators
}

// unsold reports whether what a partition sells of a resource at the least is left out,
// because it is an accelerator that the request does not ask for.
func (w *Request) unsold(resource int) bool {
	switch {
	case w.accelerator == nil || resource < quantity.GPU:
		return false
	case resource == quantity.GPU:
		return w.GPU == nil
	}
	return w.Need.At(resource) == 0 && w.accelerator(resource)
}
