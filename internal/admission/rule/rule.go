package rule

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/podselector"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Operation is one of JSON Patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Tolerations are what a new pod of a namespace lacks to run on the nodes of the intents
// that the namespace may use, as changes of the pod. Pods of namespaces without a tenant
// and those that name a DaemonSet as an owner get none. An annotation that cannot be read
// is an error.
func Tolerations(namespace *corev1.Namespace, pod *corev1.Pod) ([]Operation, error) {
	if _, tenants := namespace.Labels[v1alpha1.LabelTenant]; !tenants {
		return nil, nil
	}
	if slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }) {
		return nil, nil
	}
	var missing []string
	for intent := range strings.SplitSeq(namespace.Annotations[v1alpha1.AnnotationIntents], ",") {
		if intent = strings.TrimSpace(intent); intent == "" {
			continue
		}
		is, err := podselector.Matches(namespace.Annotations[v1alpha1.AnnotationPodsPrefix+intent], pod.Labels)
		if err != nil {
			return nil, fmt.Errorf("namespace %s: annotation %s%s: %w", namespace.Name, v1alpha1.AnnotationPodsPrefix, intent, err)
		}
		if is && !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, intent) }) {
			missing = append(missing, intent)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	var out []Operation
	if len(pod.Spec.Tolerations) == 0 {
		out = append(out, Operation{"add", "/spec/tolerations", []corev1.Toleration{}})
	}
	for _, intent := range missing {
		out = append(out, Operation{"add", "/spec/tolerations/-", corev1.Toleration{
			Key: v1alpha1.TaintIntent, Operator: corev1.TolerationOpEqual, Value: intent, Effect: corev1.TaintEffectNoSchedule,
		}})
	}
	return out, nil
}

// tolerates reports whether a toleration is the one of an intent.
func tolerates(t corev1.Toleration, intent string) bool {
	return t.Key == v1alpha1.TaintIntent && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == intent && t.Effect == corev1.TaintEffectNoSchedule
}

// Owner writes down who made a ResourceRequest, whatever the request says itself: the
// user of its creation, and in an update who was written down before. old is nil for a
// creation.
func Owner(user string, object, old *metav1.PartialObjectMetadata) []Operation {
	if old != nil {
		user = old.Annotations[v1alpha1.AnnotationOwner]
	}
	if was, has := object.Annotations[v1alpha1.AnnotationOwner]; has && was == user {
		return nil
	}
	var out []Operation
	if len(object.Annotations) == 0 {
		out = append(out, Operation{"add", "/metadata/annotations", map[string]string{}})
	}
	return append(out, Operation{"add", "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationOwner, "/", "~1"), user})
}
