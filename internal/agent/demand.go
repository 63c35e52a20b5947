package agent

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Demand is what the cluster's pods ask of the contracts that it consumes: the
// pods on each virtual node, and those that wait for room on one. A pod waits
// for the intents whose taint it tolerates (admission writes those tolerations
// into pods of offloaded namespaces), once the scheduler has said that it fits
// nowhere. nil when the cluster has neither virtual nodes nor such pods: it
// consumes nothing.
func Demand(s State) *v1alpha1.Demand {
	d := v1alpha1.Demand{Nodes: map[string]int64{}}
	for _, n := range s.Nodes {
		if isVirtual(n) {
			d.Nodes[n.Name] = 0
		}
	}
	kinds := map[string]*v1alpha1.PendingPods{}
	for _, p := range s.Pods {
		if isLive(p) {
			if n, virtual := d.Nodes[p.Spec.NodeName]; virtual && !ofDaemonSet(p) {
				d.Nodes[p.Spec.NodeName] = n + 1
			}
			continue
		}
		if !waitsForRoom(p) {
			continue
		}
		one := v1alpha1.PendingPods{Namespace: p.Namespace, Intents: intentsOf(p), Requests: wanted(p)}
		if within.Pending(&one); len(one.Intents) == 0 {
			continue
		}
		key, err := json.Marshal(one)
		if err != nil {
			continue // plain data always encodes
		}
		if kinds[string(key)] == nil {
			kinds[string(key)] = &one
		}
		kinds[string(key)].Pods++
	}
	if len(d.Nodes)+len(kinds) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		d.Pending = append(d.Pending, *kinds[key])
	}
	within.Demand(&d)
	return &d
}

// waitsForRoom reports whether the scheduler has found no node for a pod.
func waitsForRoom(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodPending && p.Status.Phase != "" {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// intentsOf are the intents whose virtual nodes a pod may use, sorted.
func intentsOf(p *corev1.Pod) []string {
	var out []string
	for _, t := range p.Spec.Tolerations {
		if t.Key == v1alpha1.TaintIntent && t.Value != "" {
			out = append(out, t.Value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wanted is what the scheduler looks for on a node.
func wanted(p *corev1.Pod) v1alpha1.Resources {
	out := amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))
	out[v1alpha1.Pods] = v1alpha1.AmountOf(1)
	return out
}

// ofDaemonSet reports whether a pod is one that runs on every node, used or not.
func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// slimTolerations keeps those that name intents.
func slimTolerations(list []corev1.Toleration) []corev1.Toleration {
	return slices.DeleteFunc(slices.Clone(list), func(t corev1.Toleration) bool { return t.Key != v1alpha1.TaintIntent })
}
