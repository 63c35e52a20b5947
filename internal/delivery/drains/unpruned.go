package drains

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Unpruned are those of some live virtual nodes that Argo CD leaves where they are and
// that may go: the slice, live or nil, is that contract's, says that no virtual node is to
// be made of it any more (Argo CD has applied the release: Liqo makes none anew), and owns
// them. One without an owner Argo CD prunes itself.
func Unpruned(contract string, slice *unstructured.Unstructured, nodes []*unstructured.Unstructured) []*unstructured.Unstructured {
	if slice == nil || slice.GetDeletionTimestamp() != nil || slice.GetLabels()[v1alpha1.LabelContract] != contract ||
		slice.GetAnnotations()[manifests.AnnotationCreateVirtualNode] != "false" {
		return nil
	}
	var out []*unstructured.Unstructured
	for _, node := range nodes {
		if node.GetDeletionTimestamp() == nil && node.GetNamespace() == slice.GetNamespace() && metav1.IsControlledBy(node, slice) {
			out = append(out, node)
		}
	}
	return out
}
