package drains

import (
	"context"
	"encoding/json"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Pod is a pod that is left on a Node that is drained.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	// Text names it and what keeps it.
	Text string
}

// metadataOnly asks for lists without what objects are; who does not know it sends all.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// Left are the pods that are left on a Node, each with the PodDisruptionBudget that
// allows no eviction. An account that may not read them sees none. call bounds each call.
func Left(ctx context.Context, api kubernetes.Interface, call func(context.Context, func(context.Context) error) error, node string) []Pod {
	var pods metav1.PartialObjectMetadataList
	err := call(ctx, func(ctx context.Context) error {
		// Of a whole pod, a cluster may answer with a quantity that takes days to read.
		text, err := api.CoreV1().RESTClient().Get().SetHeader("Accept", metadataOnly).Resource("pods").Param("fieldSelector", "spec.nodeName="+node).DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &pods)
	})
	if err != nil {
		return nil
	}
	budgets := map[string][]policyv1.PodDisruptionBudget{}
	var out []Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
			continue // Liqo's drain does not count them
		}
		list, known := budgets[pod.Namespace]
		if !known {
			_ = call(ctx, func(ctx context.Context) error { // without the right there is only less to tell
				all, err := api.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
				if err == nil {
					list = all.Items
				}
				return err
			})
			budgets[pod.Namespace] = list
		}
		out = append(out, Pod{pod.Namespace, pod.Name, pod.UID, "pod " + pod.Namespace + "/" + pod.Name + heldBy(pod, list)})
	}
	return out
}

// heldBy names the budget that allows no eviction of a pod, "" for none.
func heldBy(pod *metav1.PartialObjectMetadata, budgets []policyv1.PodDisruptionBudget) string {
	for i := range budgets {
		b := &budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Status.DisruptionsAllowed > 0 || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		return " (PodDisruptionBudget " + b.Name + " allows no disruption)"
	}
	return ""
}
