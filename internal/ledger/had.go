package ledger

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Had is what a contract had of its flavor before it was made smaller, in the flavor's names:
// its provider may hold that yet, and what was heard of it may be older than the contract.
type Had struct {
	Resources v1alpha1.Resources
	// On is what of that lay on which node, where the contract names nodes.
	On map[string]v1alpha1.Resources
}

// HadBy is what a contract has of a flavor.
func HadBy(c *v1alpha1.Contract, f *v1alpha1.Flavor) Had {
	return Had{AsOffered(c, f), NamedOn(c, f)}
}

// Smaller reports whether a contract has less of anything than it had, or of a node.
func Smaller(before, after *v1alpha1.Contract) bool {
	return !after.Spec.Resources.Covers(before.Spec.Resources) || slices.ContainsFunc(before.Spec.Nodes, func(had v1alpha1.ContractNode) bool {
		at := slices.IndexFunc(after.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return n.Node == had.Node })
		return at < 0 || !after.Spec.Nodes[at].Resources.Covers(had.Resources)
	})
}

// Max is what both had, of each node the larger.
func (h Had) Max(o Had) Had {
	return Had{h.Resources.Max(o.Resources), maxOn(h.On, o.On)}
}

func maxOn(a, b map[string]v1alpha1.Resources) map[string]v1alpha1.Resources {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(b)
	for node, r := range a {
		out[node] = out[node].Max(r)
	}
	return out
}

// Shown is a flavor on which a slice has at least what it had: f itself, where it has.
func (h Had) Shown(f *v1alpha1.Flavor, slice string) *v1alpha1.Flavor {
	most, on := f.Spec.Held[slice].Max(h.Resources), maxOn(f.Spec.HeldOn[slice], h.On)
	if most.Equal(f.Spec.Held[slice]) && maps.EqualFunc(on, f.Spec.HeldOn[slice], v1alpha1.Resources.Equal) {
		return f
	}
	shown := *f
	s := &shown.Spec
	if s.Held = maps.Clone(s.Held); s.Held == nil {
		s.Held = map[string]v1alpha1.Resources{}
	}
	if s.Held[slice] = most; len(on) > 0 {
		if s.HeldOn = maps.Clone(s.HeldOn); s.HeldOn == nil {
			s.HeldOn = map[string]map[string]v1alpha1.Resources{}
		}
		s.HeldOn[slice] = on
	}
	return &shown
}
