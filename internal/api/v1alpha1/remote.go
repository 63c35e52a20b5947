package v1alpha1

import "strings"

// LiqoID is Liqo's id of a cluster; a cluster that is not (or no longer)
// described has its name.
func LiqoID(clusters map[string]*Cluster, name string) string {
	if c := clusters[name]; c != nil && c.Spec.Liqo.ClusterID != "" {
		return c.Spec.Liqo.ClusterID
	}
	return name
}

// PeeringNamespace is the namespace of consumer in which Liqo keeps what
// concerns provider.
func PeeringNamespace(clusters map[string]*Cluster, consumer, provider string) string {
	if c := clusters[consumer]; c != nil && c.Spec.Liqo.TenantNamespace != "" {
		return c.Spec.Liqo.TenantNamespace
	}
	return "liqo-tenant-" + LiqoID(clusters, provider)
}

// RemoteName is what a namespace is called at every provider that it is
// offloaded to, when the consumer has this id in Liqo.
func (n *OffloadNamespace) RemoteName(consumerID string) string {
	switch n.NamespaceMappingStrategy {
	case "EnforceSameName":
		return n.Name
	case "SelectedName":
		return n.RemoteNamespaceName
	}
	return n.Name + "-" + consumerID
}

// SystemNamespace reports whether a namespace belongs to Kubernetes, Liqo, the
// broker or a GitOps tool: no tenant has it, neither at a consumer nor at a
// provider.
func SystemNamespace(name string) bool {
	switch name {
	case "default", "flux-system", "argocd", "argo-cd", "openshift-gitops", "fleet-system", "fleetbroker", "fleetbroker-system":
		return true
	}
	return strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "liqo") || strings.HasPrefix(name, "cattle-")
}

// MayUseSecret reports whether the tenant's file declares a Secret.
func (t *TenantSpec) MayUseSecret(consumer, namespace, name string) bool {
	for _, s := range t.Secrets {
		if s.Consumer == consumer && s.Namespace == namespace && s.Name == name {
			return true
		}
	}
	return false
}
