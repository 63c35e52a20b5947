package agent

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// withdrawn names the flavor under which slices are told of which nothing says
// what flavor they are of, and no flavor here could be.
const withdrawn = "withdrawn"

// attribute tells each slice under the flavor it is of, with the larger of what
// was granted and what runs there or on nodes that are not offered; what runs on
// other flavors' nodes is told with those.
func (c *collector) attribute(grants []grant) {
	c.next.home = map[string]string{}
	granted := map[string]grant{}
	names := map[string]bool{}
	for _, g := range grants {
		g.resources = c.names.Of(g.resources, isUsual)
		granted[g.name], names[g.name] = g, true
	}
	for _, l := range c.load {
		for name := range l.slices {
			names[name] = true
		}
	}
	for name := range c.strays {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g, isGranted := granted[name]
		if !isGranted {
			// Its quota went before its pods: only they tell what it is.
			g = grant{name: name, resources: v1alpha1.Resources{}}
		}
		home := c.home(g)
		c.next.home[name] = home
		atHome := c.strays[name]
		for i, l := range c.load {
			r, runs := l.slices[name]
			if !runs {
				continue
			}
			if host := c.hostOf(i, home, r); host != home {
				c.hold(host, name, r)
			} else {
				atHome = atHome.Add(r)
			}
		}
		c.hold(home, name, g.resources.Max(atHome))
		c.countStrays(home, c.strays[name])
	}
	c.tell()
}

// hold records that a slice has at least r of a flavor.
func (c *collector) hold(flavor, slice string, r v1alpha1.Resources) {
	f := c.byName[flavor]
	if f == nil {
		f = c.ghost(flavor)
	}
	if f.held == nil {
		f.held = map[string]v1alpha1.Resources{}
	}
	f.held[slice] = f.held[slice].Max(r)
}

// countStrays adds to a flavor's capacity what its slices run on nodes that are
// not offered (any more): as on a node out of service, it is sold and taken, and
// takes nothing from the nodes that remain.
func (c *collector) countStrays(home string, r v1alpha1.Resources) {
	of := c.byName[home]
	for _, f := range c.flavors {
		if of.group == noGroup || f.group != of.group {
			continue
		}
		for name, amount := range inFlavor(r, f.Spec.GPU, true) {
			if have, counted := f.Spec.Capacity[name]; counted {
				f.Spec.Capacity[name] = have.Add(amount)
			}
		}
	}
}

// noGroup marks a flavor without nodes.
const noGroup = -1

// home is the flavor that a slice is of. In this order: what its contract says,
// where its pods are pinned, what was known before, where its pods run, the
// first flavor that has all it was granted.
func (c *collector) home(g grant) string {
	if g.flavor != "" && c.known(g.flavor) {
		return g.flavor
	}
	if g.pool != "" {
		if f := c.first(g.resources, func(f *offered) bool { return c.groups[f.group].facts.Pool == g.pool }); f != "" {
			return f
		}
	}
	if before := c.before.home[g.name]; before != "" && c.known(before) {
		return before
	}
	if i := c.busiest(g.name); i >= 0 {
		return c.hostOf(i, "", c.load[i].slices[g.name])
	}
	if f := c.first(g.resources, func(*offered) bool { return true }); f != "" {
		return f
	}
	return withdrawn
}

// known reports whether a flavor is offered or was.
func (c *collector) known(name string) bool {
	if c.byName[name] != nil {
		return true
	}
	_, was := c.before.specs[name]
	return was
}

// busiest is the group on which most of a slice's pods run, −1 for none.
func (c *collector) busiest(slice string) int {
	best, most := -1, int64(0)
	for i, l := range c.load {
		if pods := l.slices[slice][v1alpha1.Pods].Int64(); pods > most {
			best, most = i, pods
		}
	}
	return best
}

// hostOf is the flavor of a group under which something that runs on its nodes
// is told: the slice's own when it is of this group.
func (c *collector) hostOf(group int, home string, r v1alpha1.Resources) string {
	if f := c.byName[home]; f != nil && f.group == group {
		return home
	}
	if f := c.first(r, func(f *offered) bool { return f.group == group }); f != "" {
		return f
	}
	return c.groups[group].name
}

// first is the first flavor, by name, that offers every extended resource of r;
// one with accelerators only if r has some, as far as there is a choice.
func (c *collector) first(r v1alpha1.Resources, among func(*offered) bool) string {
	best, bestAlike := "", false
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		f := c.byName[name]
		if f.group < 0 || !among(f) || !offers(f, r) {
			continue
		}
		if alike := (f.Spec.GPU != nil) == hasGPU(r); best == "" || alike && !bestAlike {
			best, bestAlike = name, alike
		}
	}
	return best
}

// offers reports whether a flavor has every extended resource of r.
func offers(f *offered, r v1alpha1.Resources) bool {
	for name, amount := range r {
		if !isExtended(name) || amount.IsZero() {
			continue
		}
		if f.Spec.GPU != nil && f.Spec.GPU.ResourceName == name {
			continue
		}
		if f.Spec.Capacity[name].IsZero() {
			return false
		}
	}
	return true
}

func hasGPU(r v1alpha1.Resources) bool {
	for name, amount := range r {
		if isGPU(name) && !amount.IsZero() {
			return true
		}
	}
	return false
}

// bound keeps what is held within what a report may have.
func (c *collector) bound(grants []grant) []string {
	rank := map[string]int{}
	for _, g := range grants {
		rank[g.name] = within.Granted
	}
	for i := range c.state.Promises {
		rank[heldName(c.state.Promises[i].Slice)] = within.OfContract
	}
	flavors := make([]*v1alpha1.FlavorSpec, len(c.flavors))
	for i, f := range c.flavors {
		flavors[i] = &f.Spec
	}
	return within.Held(flavors, func(slice string) int { return cmp.Or(rank[slice], within.Unknown) })
}

// ghost is a flavor that is not offered any more and still holds something.
func (c *collector) ghost(name string) *offered {
	spec, was := c.before.specs[name]
	if !was {
		spec = v1alpha1.FlavorSpec{Type: "K8Slice", Class: c.class()}
	}
	spec.Cordon = true
	f := &offered{Flavor: flavor(c.state.Cluster, name, spec), group: noGroup}
	c.flavors = append(c.flavors, f)
	c.byName[name] = f
	return f
}

// tell writes what is held into the flavors. Those without nodes get the
// capacity of what they hold: nothing can be sold of them, and nothing that was
// sold is in excess.
func (c *collector) tell() {
	for _, f := range c.flavors {
		if f.group == noGroup && f.Spec.GPU == nil {
			f.Spec.GPU = unknownGPU(f.held)
		}
		for slice, r := range f.held {
			if f.Spec.Held == nil {
				f.Spec.Held = make(map[string]v1alpha1.Resources, len(f.held))
			}
			f.Spec.Held[slice] = inHeld(r, f.Spec.GPU)
		}
		if f.group == noGroup {
			f.Spec.Capacity = v1alpha1.Resources{}
			for _, held := range f.Spec.Held {
				f.Spec.Capacity = f.Spec.Capacity.Add(held)
			}
			c.next.specs[f.Metadata.Name] = factsOnly(f.Spec)
		}
	}
}

// unknownGPU is the accelerator of a flavor that nothing else is known of.
func unknownGPU(held map[string]v1alpha1.Resources) *v1alpha1.FlavorGPU {
	all := v1alpha1.Resources{}
	for _, r := range held {
		all = all.Add(r)
	}
	for _, name := range all.Names() {
		if isGPU(name) && !all[name].IsZero() {
			return &v1alpha1.FlavorGPU{Vendor: gpuResources[name], UnitsPerGPU: 1, ResourceName: name}
		}
	}
	return nil
}
