package doctor

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

// Names that Liqo v1.2.0 reads (its pkg/consts).
const (
	labelRemoteCluster   = "liqo.io/remote-cluster-id"
	labelTenantNamespace = "liqo.io/tenant-namespace"
	labelRemoteID        = "liqo.io/remoteID"
	labelReplication     = "liqo.io/replication"
	labelReplicated      = "liqo.io/replicated"
	labelScheduling      = "liqo.io/scheduling-enabled"
	annotationCreate     = "liqo.io/create-virtual-node"
	annotationRemote     = "liqo.io/remote-tenant-namespace"
	annotationRenew      = v1alpha1.Group + "/renew-after"
)

func checkPeering(p *Picture) []Finding {
	out := append(checkTenantNamespace(p.Consumer, p.OnConsumer, p.ProviderID), checkTenantNamespace(p.Provider, p.OnProvider, p.ConsumerID)...)
	out = append(out, checkIdentity(p)...)
	out = append(out, checkForeign(p)...)
	return append(out, checkTenant(p)...)
}

// checkTenantNamespace looks at Liqo's namespace for the other side.
func checkTenantNamespace(c *Cluster, want, other string) []Finding {
	if !c.read(Namespaces) {
		return nil
	}
	have := tenantNamespaces(c, other)
	ns := c.one(Namespaces, "", want)
	switch {
	case len(have) > 1:
		return finding(TenantNamespaceTwice, "cluster "+c.Name, fmt.Sprintf("%d namespaces say that they are Liqo's for %s: %s. Liqo takes any of them", len(have), other, quoted(have)),
			"leftovers of an earlier peering: delete all but %s", want)
	case len(have) == 1 && have[0] != want:
		return finding(TenantNamespaceOther, at(c, Namespaces, "", have[0]), "Liqo's namespace for "+other+" is this one, the fleet takes "+want,
			"set spec.liqo.tenantNamespace: %s in clusters/%s.yaml", have[0], c.Name)
	case ns == nil:
		return finding(TenantNamespaceMissing, at(c, Namespaces, "", want), "it does not exist: the two clusters were never peered", "%s", howToPeer)
	case ns.GetDeletionTimestamp() != nil:
		return finding(TenantNamespaceDeleting, at(c, Namespaces, "", want), "it is being deleted", "wait for its deletion, or remove what blocks it (kubectl describe): the daemon creates it again")
	case len(have) == 0:
		return finding(TenantNamespaceUnlabelled, at(c, Namespaces, "", want), "it has no labels by which Liqo finds it",
			"label it %s=true and %s=%s", labelTenantNamespace, labelRemoteCluster, other)
	}
	return nil
}

const howToPeer = "with peering.auto in fleet.yaml the daemon peers them once it has kubeconfigs of both; else peer them with liqoctl authenticate"

// checkIdentity looks at the Secret from which the consumer's Liqo starts.
func checkIdentity(p *Picture) []Finding {
	c := p.Consumer
	if !c.read(Identities) {
		return nil
	}
	mine := c.all(Identities, func(u *unstructured.Unstructured) bool { return u.GetLabels()[labelRemoteCluster] == p.ProviderID })
	if len(mine) == 0 {
		return finding(IdentityMissing, at(c, Identities, p.OnConsumer, "kubeconfig-controlplane-…"), "there is none for "+p.ProviderID+": slices are not replicated there", "%s", howToPeer)
	}
	var out []Finding
	for _, u := range mine {
		where := at(c, Identities, u.GetNamespace(), u.GetName())
		if u.GetDeletionTimestamp() != nil {
			out = append(out, finding(IdentityDeleting, where, "it is being deleted, which ends only with the last slice: until then Liqo replicates some kinds and others not",
				"take its finalizers away: the daemon creates it again (kubectl patch secret -n %s %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}')", u.GetNamespace(), u.GetName())...)
		}
		if u.GetNamespace() != p.OnConsumer {
			out = append(out, finding(IdentityElsewhere, where, "it is not in "+p.OnConsumer+", where Liqo looks for it", "move it there")...)
		}
		if on := u.GetAnnotations()[annotationRemote]; on != "" && on != p.OnProvider {
			out = append(out, finding(IdentityLeadsElsewhere, where, "it leads to namespace "+on+" of the provider, the fleet takes "+p.OnProvider,
				"set spec.liqo.tenantNamespace in clusters/%s.yaml, or delete the Secret: the daemon creates it again", p.Provider.Name)...)
		}
		if renew, err := time.Parse(time.RFC3339, u.GetAnnotations()[annotationRenew]); err == nil && p.Now.After(renew.Add(time.Hour)) {
			out = append(out, finding(IdentityOld, where, "its credential was to be renewed at "+renew.UTC().Format(time.RFC3339)+" and ends soon or has ended",
				"see in the daemon's log why the peering of %s with %s is not renewed", c.Name, p.Provider.Name)...)
		}
	}
	return out
}

// checkForeign looks at how Liqo on the consumer sees the provider.
func checkForeign(p *Picture) []Finding {
	c := p.Consumer
	if !c.read(Foreign) {
		return nil
	}
	u := c.one(Foreign, "", p.ProviderID)
	where := at(c, Foreign, "", p.ProviderID)
	if u == nil {
		return finding(ForeignMissing, where, "Liqo does not know of the provider yet", "see whether liqo-controller-manager runs on %s, and the Secret of its identity", c.Name)
	}
	if s := condition(u, "APIServerStatus"); field(s, "status") == "Error" {
		if p.Provider.read(Namespaces) {
			return finding(IdentityRefused, where, "Liqo does not get through to the provider's API server, which answers here: its identity is not taken there any more",
				"the daemon renews it within minutes: see in its log why it does not; else the way from %s to %s", c.Name, either(text(u, "status", "apiServerUrl"), p.Provider.Name))
		}
		return finding(ForeignUnreachable, where, "Liqo does not reach the provider's API server: "+seen.Said(s),
			"see whether the API server of %s runs, and whether %s reaches %s", p.Provider.Name, c.Name, either(text(u, "status", "apiServerUrl"), "it"))
	}
	return checkNetwork(p, u, where)
}

// checkNetwork looks at the connection that Liqo's network module keeps, where
// both Cluster files say that it does; else another network connects the clusters
// and Liqo says nothing of it.
func checkNetwork(p *Picture, foreign *unstructured.Unstructured, where string) []Finding {
	if len(p.OnNetwork) == 0 {
		return nil
	}
	if len(p.OffNetwork) > 0 {
		return finding(NetworkOneSided, "clusters/"+p.OffNetwork[0]+".yaml", "spec.liqo.networking is off there and on in clusters/"+p.OnNetwork[0]+".yaml: Liqo's network module connects both or none",
			"set both alike")
	}
	if on, _, _ := unstructured.NestedBool(foreign.Object, "status", "modules", "networking", "enabled"); !on {
		return finding(NetworkMissing, where, "nobody has connected the two networks, so that nothing reaches the pods on its nodes from here",
			"liqoctl network connect --kubeconfig <%s> --remote-kubeconfig <%s>; or, where another network connects them, spec.liqo.networking: false in both Cluster files", p.Consumer.Name, p.Provider.Name)
	}
	s := conditionAt(foreign, "NetworkConnectionStatus", "status", "modules", "networking", "conditions")
	if field(s, "status") != "Established" {
		return finding(NetworkDown, where, "Liqo's gateways are not connected, so that nothing reaches the pods on its nodes from here: "+either(seen.Said(s), "there is no Connection"),
			"see the gateways' pods on both clusters, and whether the one that is a client reaches the other's Service (kubectl get gatewayservers,gatewayclients,connections -A)")
	}
	return nil
}

// checkTenant looks at the provider's Tenant for the consumer.
func checkTenant(p *Picture) []Finding {
	c := p.Provider
	if !c.read(Tenants) {
		return nil
	}
	mine := c.all(Tenants, func(u *unstructured.Unstructured) bool { return text(u, "spec", "clusterID") == p.ConsumerID })
	if len(mine) == 0 {
		return finding(TenantMissing, at(c, Tenants, p.OnProvider, p.ConsumerID), `there is none: no quota is made, and Liqo says "tenant not found" or "failed getting quota"`, "%s", howToPeer)
	}
	u := mine[0]
	where := at(c, Tenants, u.GetNamespace(), u.GetName())
	switch text(u, "spec", "tenantCondition") {
	case "Cordoned":
		return finding(TenantCordoned, where, "it is Cordoned: new slices are denied and resizes are not followed", "set its spec.tenantCondition to Active when the provider agrees")
	case "Drained":
		return finding(TenantDrained, where, "it is Drained: slices, quotas and pods of the consumer are gone there, though the consumer's slice still says Accepted",
			"let the intent go elsewhere (placement.providers.deny), or set its spec.tenantCondition to Active and change an annotation of the slice: Liqo replicates it again only then")
	}
	if u.GetNamespace() != p.OnProvider {
		return finding(TenantElsewhere, where, "it is not in namespace "+p.OnProvider, "set spec.liqo.tenantNamespace: %s in clusters/%s.yaml", u.GetNamespace(), c.Name)
	}
	return nil
}

func either(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}
