package ledger

import (
	"slices"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Unlimited stands for a resource that its flavor does not limit. It is far
// above any capacity (an exabyte) and far enough below what a file can hold that
// figures derived from it can be written and read back.
var Unlimited = v1alpha1.AmountOf(1 << 60)

// unlimitedWhenAbsent are the resources that a capacity may leave out without
// meaning none; any other that is absent is 0.
var unlimitedWhenAbsent = []string{v1alpha1.Pods, v1alpha1.EphemeralStorage}

// pooled are the resources that flavors of one pool have in common, being cut
// from the same nodes. Cards are not: each kind of unit is counted by its own
// flavor.
var pooled = []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage}

// IsPooled reports whether flavors of one pool have a resource in common.
func IsPooled(name string) bool { return slices.Contains(pooled, name) }

// Member is a flavor with the contracts that hold capacity of it.
type Member struct {
	Flavor *v1alpha1.Flavor
	Held   []*v1alpha1.Contract
}

// MemberOf is a flavor with its contracts in l.
func (l *Ledger) MemberOf(f *v1alpha1.Flavor) Member {
	return Member{f, l.HeldOn(f.Metadata.Namespace, f.Metadata.Name)}
}

// Figures are a flavor's figures as a decision records them: what there is,
// what the provider uses, what contracts hold, and what the other flavors of
// its pool take. The contract named except is left out ("" leaves out none):
// for resizing it, and because a decision records the figures before it.
//
// Members of the pool other than f count; f itself among them is skipped, so
// the whole pool may be passed.
func Figures(f Member, pool []Member, except string) v1alpha1.OfferFigures {
	out := v1alpha1.OfferFigures{
		Capacity:   f.Flavor.Spec.Capacity,
		Used:       f.Flavor.Spec.Used,
		Overcommit: f.Flavor.Spec.Overcommit,
		Held:       held(f, except),
		ScalableTo: scalable(f.Flavor, pool),
	}
	if f.Flavor.Spec.Pool != "" {
		out.Pool = poolShare(f, pool, except)
	}
	return out
}

// Available is what may be sold by the figures of a flavor:
//
//	capacity × overcommit − used − held − pool
//
// resource by resource, cut down to whole units. It is negative where a flavor
// has shrunk below what it sold. Resources that the capacity does not list are
// absent, and so 0, but for pods and ephemeral-storage, which are then
// Unlimited. (FORMATS section 3; the sum is DESIGN's invariant 2.)
func Available(o v1alpha1.OfferFigures) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(o.Capacity)+len(unlimitedWhenAbsent))
	for name, amount := range o.Capacity {
		out[name] = scale(amount, o.Overcommit, name).Sub(o.Used[name]).Sub(o.Held[name]).Sub(o.Pool[name])
	}
	for _, name := range unlimitedWhenAbsent {
		if _, listed := o.Capacity[name]; listed {
			continue
		}
		// A pool may limit what this flavor does not: then Pool holds Unlimited − what is left.
		out[name] = Unlimited.Sub(o.Pool[name])
	}
	return out
}

// held is what contracts hold of a flavor, in the flavor's own resource names:
// for each the larger of what it was sold and what the provider reports as
// granted to or running under it, so that neither a slice that is still being
// made nor a pod that lingers is sold again. Names that the provider reports
// and the ledger does not hold here count too: held means held.
func held(f Member, except string) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	add := func(r v1alpha1.Resources) {
		for name, amount := range r {
			out[name] = out[name].Add(amount)
		}
	}
	reported := f.Flavor.Spec.Held
	counted := 0
	known := make(map[string]bool, len(f.Held))
	for _, c := range f.Held {
		name := c.Metadata.Name
		known[name], known[c.Spec.Slice] = true, true
		r, seen := reported[name]
		if !seen && c.Spec.Slice != "" && c.Spec.Slice != name {
			r, seen = reported[c.Spec.Slice]
		}
		if seen {
			counted++
		}
		if name == except {
			continue
		}
		add(AsOffered(c, f.Flavor).Max(r))
	}
	if counted == len(reported) {
		return out
	}
	for name, r := range reported {
		if !known[name] && name != except {
			add(r)
		}
	}
	return out
}

// poolShare is how much less of the shared resources a flavor may sell than its
// own figures say, because other flavors are cut from the same nodes. Each
// flavor of a pool reports the nodes' whole capacity and the whole use of the
// provider's own pods; where they differ the smallest capacity and the largest
// use hold, and contracts of all of them add up.
func poolShare(f Member, pool []Member, except string) v1alpha1.Resources {
	members := []Member{f}
	for _, m := range pool {
		if m.Flavor.Ref() != f.Flavor.Ref() && samePool(m.Flavor, f.Flavor) {
			members = append(members, m)
		}
	}
	helds := make([]v1alpha1.Resources, len(members))
	for i, m := range members {
		helds[i] = held(m, except)
	}
	return shareOf(members, helds)
}

// shareOf is poolShare of the first of members, by what contracts hold of each.
func shareOf(members []Member, helds []v1alpha1.Resources) v1alpha1.Resources {
	share, f := v1alpha1.Resources{}, members[0]
	for _, name := range pooled {
		capacity, limited := Unlimited, false
		var used, sold v1alpha1.Amount
		for i, m := range members {
			s := m.Flavor.Spec
			if own, listed := sellable(s, name); listed {
				limited = true
				if own.Less(capacity) {
					capacity = own
				}
			}
			used = used.Max(s.Used[name])
			sold = sold.Add(helds[i][name])
		}
		if !limited {
			continue
		}
		left := capacity.Sub(used).Sub(sold)
		own := Unlimited
		if c, listed := sellable(f.Flavor.Spec, name); listed {
			own = c.Sub(f.Flavor.Spec.Used[name]).Sub(helds[0][name])
		}
		if d := own.Sub(left); !d.IsZero() {
			share[name] = d
		}
	}
	return share
}

func samePool(a, b *v1alpha1.Flavor) bool {
	return a.Metadata.Namespace == b.Metadata.Namespace && a.Spec.Pool == b.Spec.Pool
}

// sellable is a flavor's capacity × overcommit of a shared resource; listed is
// false where the flavor does not limit it.
func sellable(s v1alpha1.FlavorSpec, name string) (a v1alpha1.Amount, listed bool) {
	a, listed = s.Capacity[name]
	if !listed && (name == v1alpha1.CPU || name == v1alpha1.Memory) {
		return v1alpha1.Amount{}, true
	}
	return scale(a, s.Overcommit, name), listed
}

// scale is amount × its overcommit ratio (1 where there is none), cut down to
// whole units.
func scale(amount v1alpha1.Amount, ratios v1alpha1.Overcommit, name string) v1alpha1.Amount {
	ratio, ok := ratios[name]
	if !ok {
		return amount
	}
	exact := ratio.MulInt(amount.Int64())
	whole := exact.Round(0)
	if exact.Cmp(whole) < 0 {
		whole = whole.Sub(v1alpha1.DecimalFromInt(1))
	}
	n, err := strconv.ParseInt(whole.String(), 10, 64)
	if err != nil || n > Unlimited.Int64() {
		return Unlimited
	}
	return v1alpha1.AmountOf(n)
}

// Fits reports whether a size is available, and the first resource in order of
// name of which there is too little.
func Fits(available, size v1alpha1.Resources) (short string, ok bool) {
	for _, name := range size.Names() {
		if want := size[name]; !want.IsZero() && available[name].Less(want) {
			return name, false
		}
	}
	return "", true
}

// DefaultGPUResource is what a GPU flavor's units are called on a slice when
// the flavor does not say.
const DefaultGPUResource = "nvidia.com/gpu"

// GPUResource is the name under which a flavor's units stand on a slice.
func GPUResource(f *v1alpha1.Flavor) string {
	if g := f.Spec.GPU; g != nil && g.ResourceName != "" {
		return g.ResourceName
	}
	return DefaultGPUResource
}

// AsOffered is a contract's resources in its flavor's own names: flavors count
// sellable units as `gpu`, slices carry them under the extended resource's
// name.
func AsOffered(c *v1alpha1.Contract, f *v1alpha1.Flavor) v1alpha1.Resources {
	return rename(c.Spec.Resources, SlicedAs(c, f), v1alpha1.GPU)
}

// SlicedAs is the name under which a contract's slice carries its flavor's GPUs.
func SlicedAs(c *v1alpha1.Contract, f *v1alpha1.Flavor) string {
	if c.Spec.GPUs != nil && c.Spec.GPUs.ResourceName != "" {
		return c.Spec.GPUs.ResourceName
	}
	return GPUResource(f)
}

// AsSliced is resources in a flavor's names as a slice carries them.
func AsSliced(r v1alpha1.Resources, f *v1alpha1.Flavor) v1alpha1.Resources {
	return rename(r, v1alpha1.GPU, GPUResource(f))
}

func rename(r v1alpha1.Resources, from, to string) v1alpha1.Resources {
	amount, ok := r[from]
	if !ok || from == to {
		return r
	}
	out := r.Clone()
	delete(out, from)
	out[to] = out[to].Add(amount)
	return out
}
