package planner

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What has no price can be taken for nothing: all pods or all storage of a
// flavor, and its GPUs then serve nobody. So a contract leaves to a flavor's free
// GPUs half of what each resource without a price has in proportion to them:
//
//	free after it  ≥  capacity / 2 × GPUs free after it / GPUs
//
// A contract with GPUs may take the fleet's defaults (110 pods …) of it in any
// case, and cores and memory as it likes: they are sold with its GPUs. What has a price is for whoever pays it, and on a flavor without any
// price nothing is more for free than its GPUs. Volcano's proportional predicate
// keeps cores and memory of a node for its idle GPUs in the same way.

// ReqKept and the name of a resource: the rest of it is kept for the GPUs that
// are free.
const ReqKept = "kept."

var keptFor = [rGPU]string{rCPU: ReqKept + v1alpha1.CPU, rMemory: ReqKept + v1alpha1.Memory, rPods: ReqKept + v1alpha1.Pods, rStorage: ReqKept + v1alpha1.EphemeralStorage}

// forGPUs is the requirement that a size fails which takes what is kept for an
// offer's GPUs, in place of what it had of it; "" for none.
func (r *round) forGPUs(o *offer, size, had vec) string {
	whole, left := o.capacity.at(rGPU), o.free.at(rGPU)+had.at(rGPU)-size.at(rGPU)
	if whole <= 0 || left <= 0 || !r.by(rulesKeptForGPUs) {
		return ""
	}
	t := r.tariffOf(o)
	if t.why != "" {
		return ""
	}
	for i := range keptFor {
		n := size.at(i)
		if n <= had.at(i) || t.onDemand.prices(i) || size.at(rGPU) > 0 && (i == rCPU || i == rMemory || n <= r.defaults.at(i)) {
			continue
		}
		if o.free.at(i)+had.at(i)-n < o.keeps(i, left) {
			return keptFor[i]
		}
	}
	return ""
}

// keeps is what of a resource is kept for so many free GPUs.
func (o *offer) keeps(i int, gpus int64) int64 {
	return wide{}.addProduct(o.capacity.at(i), gpus, 1).quo(2 * uint64(o.capacity.at(rGPU)))
}

// prices reports whether a resource has a price.
func (u *unitPrices) prices(i int) bool {
	switch i {
	case rCPU:
		return u.cpu > 0
	case rMemory:
		return u.memory > 0
	case rStorage:
		return u.storage > 0
	}
	return u.extended[i] > 0
}

// beside is what of a resource a size may take of an offer without touching what
// is kept for its GPUs.
func (r *round) beside(o *offer, size vec, i int) int64 {
	return max(o.free.at(i)-o.keeps(i, max(o.free.at(rGPU)-size.at(rGPU), 0)), 0)
}

// detailKept says with numbers how a size takes what is kept.
func (r *round) detailKept(o *offer, size vec, name string) string {
	i := r.names.of(name)
	return fmt.Sprintf("%s of %s %s free beside what is kept for its %d free GPUs, as it has no price there",
		v1alpha1.AmountOf(r.beside(o, size, i)).Canonical(name), v1alpha1.AmountOf(size.at(i)).Canonical(name), name, max(o.free.at(rGPU)-size.at(rGPU), 0))
}

// relaxKept asks for what is not kept for GPUs.
func (r *round) relaxKept(spec *v1alpha1.IntentSpec, c *candidate, name string) (text, said string) {
	i := r.names.of(name)
	have := v1alpha1.AmountOf(r.beside(c.offer, c.size, i))
	if have.IsZero() {
		return "", ""
	}
	spec.Resources.Named = spec.Resources.Named.Clone()
	if spec.Resources.Named == nil {
		spec.Resources.Named = v1alpha1.Resources{}
	}
	spec.Resources.Named[name] = have
	return "resources." + name + ": \"" + have.Canonical(name) + "\"",
		"has " + have.Canonical(name) + " of " + v1alpha1.AmountOf(c.size.at(i)).Canonical(name) + " " + name + " free beside what is kept for its free GPUs"
}
