package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// AskPods notes how the replicas of a request are made of pods; nil: nothing is stated.
func (m *Matcher) AskPods(w *Request, p *v1alpha1.PodRequest) {
	all := p.All()
	w.pod = nodes.Ask{Pod: m.facts.Names.VectorOf(all)}
	for _, name := range all.Names() {
		w.pod.Named = append(w.pod.Named, m.facts.Names.Of(name))
	}
}

// Pods is how a size of an offer is made of a request's pods; false where nodes do not
// matter: the offer tells none, or the size has no accelerators and stays with the pool.
func (m *Matcher) Pods(w *Request, o *inventory.Offer, size quantity.Vector) (ask nodes.Ask, ok bool) {
	if o.Nodes() == nil {
		return ask, false
	}
	ask = w.pod
	if ask.Unit = quantity.GPU; size.At(quantity.GPU) > 0 {
		if d := o.Cards(); d != nil && !w.GPU.Loose(o.Flavor.Spec.GPU) {
			ask.Cards = d.Times
		}
		return ask, true
	}
	unit := ""
	for i := quantity.Extended; i < len(size); i++ {
		if name := m.facts.Names.Name(i); size[i] > 0 && m.isAccelerator(name) && (unit == "" || name < unit) {
			ask.Unit, unit = i, name
		}
	}
	return ask, unit != ""
}

// SinglePods reports whether a request's pods have one GPU each.
func (w *Request) SinglePods() bool { return w.pod.Pod.At(quantity.GPU) == 1 }

// Packs reports whether an offer's nodes hold a size of a request. Where the offer can
// grow, a node of the biggest shape may be added.
func (m *Matcher) Packs(w *Request, o *inventory.Offer, size quantity.Vector) bool {
	ask, ok := m.Pods(w, o, size)
	return !ok || o.Nodes().Fits(size, ask) || o.Growth != nil && o.Nodes().FitsShape(size, ask)
}

// needsNode reports whether a size fits only on a node that its offer has yet to add.
func (m *Matcher) needsNode(w *Request, o *inventory.Offer, size quantity.Vector) bool {
	if o.Growth == nil {
		return false
	}
	ask, ok := m.Pods(w, o, size)
	return ok && !o.Nodes().Fits(size, ask)
}
