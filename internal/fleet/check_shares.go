package fleet

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/shares"
)

// shares checks what the virtual nodes of a replica name and have of it.
func (c *checker) shares(spec place, s *v1alpha1.IntentSpec) {
	if s.VirtualNode == nil {
		return
	}
	for i, share := range s.VirtualNode.Shares {
		p := spec.in("virtualNode", "shares", i)
		c.resourceNames(p, share)
		c.bytes(p, share)
	}
	c.domains(spec, shares.Of(s))
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
