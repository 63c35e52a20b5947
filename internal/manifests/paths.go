package manifests

import (
	"fmt"
	"path"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Root is the directory of all manifests in the fleet repo.
const Root = "manifests"

const (
	kustomizationFile = "kustomization.yaml"
	namespacesDir     = "namespaces"
	policiesDir       = "policies"
)

// Dir is the directory of a consumer's manifests.
func Dir(consumer string) string { return path.Join(Root, consumer) }

// SliceFile is where a contract's ResourceSlice stands.
func SliceFile(c *v1alpha1.Contract) string { return contractFile(c, "slice") }

// VirtualNodeFiles are where a contract's VirtualNodes stand, in their order.
func VirtualNodeFiles(c *v1alpha1.Contract) []string {
	nodes := len(c.Spec.Nodes)
	if nodes < 2 {
		if !c.Spec.VirtualNode.IsShared() {
			return []string{contractFile(c, "virtualnode")}
		}
		nodes = len(c.Spec.VirtualNode.Shares)
	}
	out := make([]string, nodes)
	for i := range out {
		out[i] = contractFile(c, fmt.Sprintf("virtualnode-%d", i+1))
	}
	return out
}

// NamespaceFile is where a namespace's objects stand.
func NamespaceFile(consumer, namespace string) string {
	return path.Join(Dir(consumer), namespacesDir, namespace+".yaml")
}

func contractFile(c *v1alpha1.Contract, kind string) string {
	return path.Join(Dir(c.Spec.Consumer), c.Metadata.Namespace, v1alpha1.IntentShard(c.Spec.Intent.Name),
		c.Metadata.Name+"-"+kind+".yaml")
}

// SliceName is the name of a contract's slice, and of its virtual node and Node
// where it has one.
func SliceName(c *v1alpha1.Contract) string {
	if c.Spec.Slice != "" {
		return c.Spec.Slice
	}
	return c.Metadata.Name
}

// LiqoID is Liqo's id of a cluster; a cluster that is not (or no longer)
// described has its name.
func LiqoID(clusters map[string]*v1alpha1.Cluster, name string) string {
	return v1alpha1.LiqoID(clusters, name)
}

// TenantNamespace is the namespace of consumer in which Liqo keeps what
// concerns provider.
func TenantNamespace(clusters map[string]*v1alpha1.Cluster, consumer, provider string) string {
	return v1alpha1.PeeringNamespace(clusters, consumer, provider)
}
