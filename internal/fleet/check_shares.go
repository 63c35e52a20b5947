package fleet

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// shares checks that the virtual nodes of a replica have room in it, whichever
// of its alternatives it comes from.
func (c *checker) shares(spec place, s *v1alpha1.IntentSpec) {
	v := s.VirtualNode
	if v == nil || len(v.Shares) == 0 {
		return
	}
	p := spec.in("virtualNode", "shares")
	if len(v.Shares) > v1alpha1.MaxShares {
		c.errorf(p, "BadValue", "%s: %d virtual nodes of one slice are too many; write at most %d", p, len(v.Shares), v1alpha1.MaxShares)
	}
	names := v.Shared()
	for i, share := range v.Shares {
		p := p.in(i)
		c.resourceNames(p, share)
		if missing := slices.IndexFunc(names, func(name string) bool { _, ok := share[name]; return !ok }); missing >= 0 {
			c.errorf(p, "BadValue", "%s has no %s, which another share has: all name the same resources, with 0 for none", p, names[missing])
		}
		for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory} {
			if amount, ok := share[name]; ok && amount.IsZero() {
				c.errorf(p.in(name), "BadValue", "%s is 0: a Node without it is never ready", p.in(name))
			}
		}
	}
	c.sharesFit(p, s, names, s.Resources, "spec.resources")
	for i, alt := range s.Alternatives {
		c.sharesFit(p, s, names, alt.Over(s.Resources), spec.in("alternatives", i).String())
	}
}

// sharesFit compares the sum of the shares with what a replica asks for.
func (c *checker) sharesFit(p place, s *v1alpha1.IntentSpec, names []string, from v1alpha1.ResourceRequest, where string) {
	for _, name := range names {
		sum := v1alpha1.Amount{}
		for _, share := range s.VirtualNode.Shares {
			sum = sum.Add(share[name])
		}
		has, named := from.Named[name]
		if name == v1alpha1.GPU {
			if from.GPU != nil && from.GPU.Share != nil {
				c.errorf(p, "BadValue", "%s: a part of one GPU is not shared again; take gpu out of the shares", p)
				continue
			}
			named = from.GPU != nil
			if named {
				has = v1alpha1.AmountOf(int64(max(from.GPU.Count, 1)))
			}
		}
		switch {
		case !named && !sum.IsZero():
			c.errorf(p, "BadValue", "%s name %s, which %s does not: write there how much a replica has", p, name, where)
		case has.Less(sum):
			c.errorf(p, "BadValue", "%s: together they have %s %s, and %s only %s", p, sum.Canonical(name), name, where, has.Canonical(name))
		}
	}
}

// ownSecret checks the Secret that a virtual node is made with. Those that Liqo
// and the broker make are other slices' and the cluster's own.
func (c *checker) ownSecret(p place, r v1alpha1.SecretKeyRef) {
	c.secret(p, r)
	for _, made := range []string{"kubeconfig-resourceslice-", "kubeconfig-controlplane-"} {
		if strings.HasPrefix(r.Name, made) {
			c.errorf(p.in("name"), "BadName", "%s: Secrets called %s… are Liqo's own, of other slices: name one that was made for this intent", p.in("name"), made)
		}
	}
	if r.Key != "" && r.Key != v1alpha1.SecretKubeconfig {
		c.errorf(p.in("key"), "BadValue", "%s: Liqo reads the kubeconfig under the key %s; leave it out", p.in("key"), v1alpha1.SecretKubeconfig)
	}
}
