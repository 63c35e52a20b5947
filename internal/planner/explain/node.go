package explain

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// freeOnNodes is what is free of an offer on how many nodes: "8 GPUs free on 2 nodes, at
// most 4 on one". Where the GPUs of a pod are free on one, what else it lacks there.
func (r *Explainer) freeOnNodes(w *match.Request, c *match.Candidate) string {
	ask, ok := r.Match.Pods(w, c.Offer, c.Size)
	if !ok {
		return ""
	}
	m := c.Offer.Nodes()
	sum, on, most := m.Free(ask.Unit)
	text := fmt.Sprintf("%d %s free on %s, at most %d on one", sum, r.unitText(c.Offer, ask.Unit, sum), nodesText(on), most)
	if short, have := m.Short(c.Size, ask); short >= 0 && short != ask.Unit {
		name := r.Names.Name(short)
		text += fmt.Sprintf(", with at most %s %s next to what a pod needs of them", v1alpha1.AmountOf(have).Canonical(name), name)
	}
	return text
}

// unitText is what units of an offer's resource are called.
func (r *Explainer) unitText(o *inventory.Offer, resource int, n int64) string {
	name, gpu := r.Names.Name(resource), o.Flavor.Spec.GPU
	switch {
	case name != v1alpha1.GPU:
		return name
	case gpu != nil && gpu.Profile != "":
		return "instances of " + gpu.Profile
	case gpu != nil && gpu.UnitsPerGPU > 1:
		return fmt.Sprintf("units of 1/%d GPU", gpu.UnitsPerGPU)
	}
	if n == 1 {
		return "GPU"
	}
	return "GPUs"
}

func nodesText(n int64) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// relaxNode asks for pods of one GPU each, or for no more of what else a pod lacks than the
// node with its GPUs has.
func (r *Explainer) relaxNode(spec *v1alpha1.IntentSpec, w *match.Request, c *match.Candidate) (text, said string) {
	if said = r.freeOnNodes(w, c); said == "" {
		return "", ""
	}
	said = "has " + said
	ask, _ := r.Match.Pods(w, c.Offer, c.Size)
	if short, have := c.Offer.Nodes().Short(c.Size, ask); short >= 0 && short != ask.Unit && have > 0 && spec.PerPod == nil {
		name, amount := r.Names.Name(short), v1alpha1.AmountOf(have)
		spec.Resources.Named = spec.Resources.Named.Clone()
		spec.Resources.Named[name] = amount
		return "resources." + name + ": \"" + amount.Canonical(name) + "\"", said
	}
	if g := spec.Resources.GPU; g == nil || g.Share != nil || g.Count <= 1 || spec.PerPod != nil && spec.PerPod.GPUs == 1 {
		return "", said
	}
	spec.PerPod = &v1alpha1.PodRequest{GPUs: 1}
	return "perPod: {gpu: 1}", said
}
