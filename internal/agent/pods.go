package agent

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Labels of Liqo v1.2.0 on pods that another cluster offloaded
// (pkg/virtualKubelet/forge/meta.go, pkg/consts/authentication.go,
// pkg/consts/replication.go). The creator is set from the authenticated user by
// the provider's own webhook; the node name is the consumer's word.
const (
	labelCreator      = "liqo.io/creator-user"
	labelOriginNode   = "offloading.liqo.io/nodename"
	labelOrigin       = "offloading.liqo.io/origin"
	labelLiqoManaged  = "liqo.io/managed-by"
	liqoManagedShadow = "shadowpod"
)

// isLive reports whether a pod takes capacity of a node: bound, and not ended.
// One that is being deleted does until it is gone.
func isLive(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// isOffloaded reports whether a pod runs here for another cluster.
func isOffloaded(p *corev1.Pod) bool {
	return p.Labels[labelOrigin] != "" || p.Labels[labelLiqoManaged] == liqoManagedShadow
}

// requests is what the scheduler deducts for a pod, and the pod itself.
func requests(p *corev1.Pod) v1alpha1.Resources {
	// Status tells what a resized pod still has: the larger of both counts.
	out := amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}))
	out[v1alpha1.Pods] = v1alpha1.AmountOf(1)
	return out
}

// sliceOf is the slice under which an offloaded pod runs, "" when its labels
// name none.
func sliceOf(p *corev1.Pod, sliceByUser map[string]string) string {
	if user := p.Labels[labelCreator]; user != "" {
		if slice, ok := sliceByUser[user]; ok {
			return slice
		}
		return heldName(withoutUserSuffix(user))
	}
	if node := p.Labels[labelOriginNode]; node != "" {
		return heldName(node)
	}
	return ""
}
