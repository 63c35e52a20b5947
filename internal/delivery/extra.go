package delivery

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/applier"
)

// nodeOf is the Node that a pod is bound to.
func nodeOf(pod *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return name
}

// trimPod leaves of a pod what is looked at.
func trimPod(pod *unstructured.Unstructured) *unstructured.Unstructured {
	reason, _, _ := unstructured.NestedString(pod.Object, "status", "reason")
	out := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"nodeName": nodeOf(pod)}, "status": map[string]any{"reason": reason},
	}}
	out.SetAPIVersion(pod.GetAPIVersion())
	out.SetKind(pod.GetKind())
	out.SetNamespace(pod.GetNamespace())
	out.SetName(pod.GetName())
	out.SetUID(pod.GetUID())
	out.SetResourceVersion(pod.GetResourceVersion())
	return out
}

// extraNews is what an observation takes from an object that is only watched;
// "" is nothing.
func extraNews(k kind, u *unstructured.Unstructured) string {
	switch k {
	case kindForeign:
		return foreignTrouble(u)
	case kindPod:
		if reason, _, _ := unstructured.NestedString(u.Object, "status", "reason"); reason == v1alpha1.ReasonBackOff {
			return nodeOf(u) + " " + u.GetNamespace() + "/" + u.GetName()
		}
	}
	return ""
}

// foreignTrouble is why Liqo does not reach the API server of another cluster,
// "" when it does or has not tried.
func foreignTrouble(u *unstructured.Unstructured) string {
	c := applier.Condition(u, "APIServerStatus")
	if c["status"] != "Error" {
		return ""
	}
	return said(c)
}

// said is a condition's reason and message, as far as it has them.
func said(condition map[string]any) string {
	reason, _ := condition["reason"].(string)
	message, _ := condition["message"].(string)
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// unreached says that Liqo on the consumer does not reach the provider of a
// slice.
func unreached(c *conn, slice *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(slice.Object, "spec", "providerClusterID")
	foreign := c.get(key{Kind: kindForeign, Name: id})
	if foreign == nil {
		return ""
	}
	if text := foreignTrouble(foreign); text != "" {
		return "Liqo does not reach the API server of " + id + ": " + text
	}
	return ""
}

// refusedPods says which pods of a contract's namespaces wait on its Nodes
// because the provider does not take them.
func refusedPods(c *conn, contract *v1alpha1.Contract, nodes []v1alpha1.NodeShare) string {
	inf := c.informers[kindPod]
	if inf == nil || contract.Spec.Offload == nil {
		return ""
	}
	var pods []any
	for _, node := range nodes {
		list, err := inf.GetIndexer().ByIndex(byNode, node.Name)
		if err != nil {
			return ""
		}
		pods = append(pods, list...)
	}
	var found []string
	for _, obj := range pods {
		pod := obj.(*unstructured.Unstructured)
		in := func(ns v1alpha1.OffloadNamespace) bool { return ns.Name == pod.GetNamespace() }
		if extraNews(kindPod, pod) != "" && slices.ContainsFunc(contract.Spec.Offload.Namespaces, in) {
			found = append(found, pod.GetNamespace()+"/"+pod.GetName())
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return ""
	case 1, 2, 3:
		return fmt.Sprintf("%s does not take pod %s", contract.Spec.Provider, strings.Join(found, ", "))
	}
	return fmt.Sprintf("%s does not take pod %s and %d more", contract.Spec.Provider, strings.Join(found[:2], ", "), len(found)-2)
}
