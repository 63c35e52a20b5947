package manifests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Names that Liqo v1.2.0 reads (its pkg/consts). A slice without remoteID or
// replication does nothing at all; without remote-cluster-id it gets no
// virtual node; neither is reported anywhere.
const (
	LabelRemoteClusterID        = "liqo.io/remote-cluster-id"
	labelRemoteID               = "liqo.io/remoteID"
	labelReplication            = "liqo.io/replication"
	labelTenantNamespace        = "liqo.io/tenant-namespace"
	AnnotationCreateVirtualNode = "liqo.io/create-virtual-node"
)

// ClassDefault is Liqo's own class, which grants whatever is asked.
const ClassDefault = "default"

// check says why a contract cannot be rendered. Liqo accepts fractions and
// negative counts of extended resources, and its virtual kubelet then fails
// for ever; nothing of the kind is written.
func check(c *v1alpha1.Contract) error {
	if _, ok := c.Spec.Resources[v1alpha1.GPU]; ok {
		return fmt.Errorf("resources name %q: a slice carries GPUs under their resource name, such as nvidia.com/gpu", v1alpha1.GPU)
	}
	for _, name := range c.Spec.Resources.Names() {
		if c.Spec.Resources[name].Int64() < 0 {
			return fmt.Errorf("resources: %s is negative", name)
		}
	}
	if len(c.Spec.Resources) == 0 {
		return errors.New("resources are empty: Liqo would fill in 4 CPU, 8Gi and 110 pods")
	}
	if err := onnodes.Contract(c); err != nil {
		return err
	}
	if why := c.SharesExceed(); why != "" {
		return fmt.Errorf("%s: make them smaller in intent %s/%s", why, c.Metadata.Namespace, c.Spec.Intent.Name)
	}
	return nil
}

func (r *render) resourceSlice(c *v1alpha1.Contract) *authv1beta1.ResourceSlice {
	provider := LiqoID(r.clusters, c.Spec.Provider)
	class := c.Spec.Class
	if class == "" {
		class = ClassDefault
	}
	meta := r.contractMeta(c)
	meta.Labels[labelRemoteID] = provider
	meta.Labels[labelReplication] = "true"
	// "false" is explicit: taking the annotation away would not stop Liqo
	// from making the virtual node anew. It stays so where virtual nodes stand in
	// manifests of their own: Liqo would make one of the whole slice beside them.
	meta.Annotations = map[string]string{AnnotationCreateVirtualNode: "true", v1alpha1.AnnotationFlavor: c.Spec.Flavor}
	if releasing(c) || c.Spec.ByHand() {
		meta.Annotations[AnnotationCreateVirtualNode] = "false"
	}
	providerID := liqov1beta1.ClusterID(provider)
	return &authv1beta1.ResourceSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: authv1beta1.GroupVersion.String(), Kind: authv1beta1.ResourceSliceKind},
		ObjectMeta: meta,
		Spec: authv1beta1.ResourceSliceSpec{
			Class:             authv1beta1.ResourceSliceClass(class),
			ProviderClusterID: &providerID,
			Resources:         sliceResources(c.Spec.Resources),
		},
	}
}

// sliceResources are quantities in canonical form: any other is rewritten by
// Liqo's controller, and the two then fight over the field at every apply.
func sliceResources(r v1alpha1.Resources) corev1.ResourceList {
	out := make(corev1.ResourceList, len(r))
	for name, amount := range r {
		out[corev1.ResourceName(name)] = resource.MustParse(amount.Canonical(name))
	}
	return out
}

// virtualNode is one virtual node of a contract, for a share of it or all.
func (r *render) virtualNode(c *v1alpha1.Contract, share v1alpha1.NodeShare) *offv1beta1.VirtualNode {
	node := &offv1beta1.VirtualNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: offv1beta1.SchemeGroupVersion.String(), Kind: "VirtualNode"},
		ObjectMeta: r.contractMeta(c),
		Spec: offv1beta1.VirtualNodeSpec{
			ClusterID: liqov1beta1.ClusterID(LiqoID(r.clusters, c.Spec.Provider)),
			Labels:    map[string]string{},
			Taints:    r.nodeTaints(c),
		},
	}
	node.Name = share.Name
	if c.Spec.ByHand() {
		byHand(node, c, share)
	}
	if want := c.Spec.VirtualNode; want != nil {
		maps.Copy(node.Spec.Labels, want.Labels)
		if want.RuntimeClassName != "" {
			if node.Spec.OffloadingPatch == nil {
				node.Spec.OffloadingPatch = &offv1beta1.OffloadingPatch{}
			}
			node.Spec.OffloadingPatch.RuntimeClassName = &want.RuntimeClassName
		}
	}
	// Ours go last: the guard policy refuses a node whose intent label is not
	// its taint's value.
	node.Spec.Labels[v1alpha1.LabelIntent] = r.intentValue(c)
	node.Spec.Labels[v1alpha1.LabelContract] = c.Metadata.Name
	node.Spec.Labels[v1alpha1.LabelTenant] = c.Metadata.Namespace
	r.ofFleet(node.Spec.Labels)
	return node
}

// SecretOfSlice begins the name of the Secret that Liqo makes of a slice.
const SecretOfSlice = "kubeconfig-resourceslice-"

// byHand fills in what Liqo takes from the slice for a virtual node that it
// makes itself: credentials, size, the provider's nodes (or the one node that the
// contract names) and what they are.
func byHand(node *offv1beta1.VirtualNode, c *v1alpha1.Contract, share v1alpha1.NodeShare) {
	secret := SecretOfSlice + SliceName(c)
	if v := c.Spec.VirtualNode; v != nil && v.KubeconfigSecretRef != nil && v.KubeconfigSecretRef.Name != "" {
		secret = v.KubeconfigSecretRef.Name
	}
	node.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: secret}
	node.Spec.ResourceQuota.Hard = sliceResources(share.Resources)
	// A file's nodes have numbers, and no label: pods are pinned to the pool alone.
	selector := c.Spec.NodeSelector
	if onnodes.IsHash(share.Node) {
		selector = map[string]string{}
		maps.Copy(selector, c.Spec.NodeSelector)
		selector[v1alpha1.LabelNode] = share.Node
	}
	if len(selector) > 0 {
		node.Spec.OffloadingPatch = &offv1beta1.OffloadingPatch{NodeSelector: selector}
	}
	if g := c.Spec.GPUs; g != nil {
		maps.Copy(node.Spec.Labels, v1alpha1.CardLabels("", g.Model, g.Tier, g.Memory))
	}
}

// nodeTaints keep everybody else's pods off the node. Where a namespace may run
// in both places, a soft one keeps pods at home that could run there: pods
// without accelerators would otherwise fill the virtual node.
func (r *render) nodeTaints(c *v1alpha1.Contract) []corev1.Taint {
	out := []corev1.Taint{{
		Key:    v1alpha1.TaintIntent,
		Value:  r.intentValue(c),
		Effect: corev1.TaintEffectNoSchedule,
	}}
	if slices.ContainsFunc(offloaded(c), func(ns v1alpha1.OffloadNamespace) bool {
		return podStrategy(ns) == offv1beta1.LocalAndRemotePodOffloadingStrategyType
	}) {
		out = append(out, corev1.Taint{Key: v1alpha1.TaintRemote, Value: "true", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if c.Spec.VirtualNode != nil {
		for _, t := range c.Spec.VirtualNode.Taints {
			if !strings.HasPrefix(t.Key, v1alpha1.Group+"/") {
				out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
			}
		}
	}
	return out
}

// contractMeta is what slice and virtual node have in common.
func (r *render) contractMeta(c *v1alpha1.Contract) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      SliceName(c),
		Namespace: TenantNamespace(r.clusters, c.Spec.Consumer, c.Spec.Provider),
		Labels: r.ofFleet(map[string]string{
			LabelRemoteClusterID:    LiqoID(r.clusters, c.Spec.Provider),
			v1alpha1.LabelContract:  c.Metadata.Name,
			v1alpha1.LabelTenant:    c.Metadata.Namespace,
			v1alpha1.LabelIntent:    r.intentValue(c),
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		}),
	}
}
