package howto

import (
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/podselector"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Image is what the author of a manifest replaces.
const Image = "YOUR-IMAGE"

// Manifest is an object of a kind that uses what contracts of one intent hold, as YAML:
// as many pods as they have virtual nodes, each as large as the smallest of them. ""
// where no namespace may use it.
func Manifest(kind string, held []*v1alpha1.Contract) string {
	first := held[0]
	if first.Spec.Stage == v1alpha1.StageReserve || first.Spec.Offload == nil || len(first.Spec.Offload.Namespaces) == 0 {
		return ""
	}
	nodes, least := 0, v1alpha1.Resources(nil)
	for _, c := range held {
		for _, share := range c.VirtualNodes() {
			nodes++
			if least == nil || smaller(first, share.Resources, least) {
				least = share.Resources
			}
		}
	}
	ns, name := first.Spec.Offload.Namespaces[0], first.Spec.Intent.Name
	labels := podselector.Labels(ns.PodSelector, name, "app", "app.kubernetes.io/name", "intent")
	container := map[string]any{"name": "main", "image": Image, "resources": map[string]any{"limits": limits(first, least)}}
	pod := map[string]any{"containers": []any{container}}
	meta := map[string]any{"name": name, "namespace": ns.Name, "labels": labels}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}
	var object map[string]any
	switch kind {
	case Pod:
		pod["restartPolicy"] = "Never"
		object = map[string]any{"apiVersion": "v1", "kind": Pod, "metadata": meta, "spec": pod}
	case Deployment:
		object = map[string]any{"apiVersion": "apps/v1", "kind": Deployment, "metadata": meta, "spec": map[string]any{
			"replicas": nodes, "selector": map[string]any{"matchLabels": labels}, "template": template,
		}}
	default:
		pod["restartPolicy"] = "OnFailure"
		spec := map[string]any{"parallelism": nodes, "completions": nodes, "template": template}
		if nodes > 1 {
			spec["completionMode"] = "Indexed" // each pod knows its number: JOB_COMPLETION_INDEX
		}
		object = map[string]any{"apiVersion": "batch/v1", "kind": Job, "metadata": meta, "spec": spec}
	}
	b, err := yaml.Marshal(object)
	if err != nil {
		return "" // it is made of strings and numbers
	}
	return string(b)
}

// limits are what a pod that fills a virtual node asks for: its accelerators, cores and
// memory. Ephemeral storage and pods are left to the cluster's defaults.
func limits(c *v1alpha1.Contract, node v1alpha1.Resources) map[string]string {
	out := map[string]string{}
	for _, name := range node.Names() {
		switch {
		case name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage || node[name].IsZero():
		case name == v1alpha1.CPU || name == v1alpha1.Memory || strings.Contains(name, "/"):
			out[name] = node[name].Canonical(name)
		}
	}
	return out
}

// smaller reports whether a share has less of the contract's cards, or of its cores
// where it has none.
func smaller(c *v1alpha1.Contract, a, b v1alpha1.Resources) bool {
	name := v1alpha1.CPU
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		name = g.ResourceName
	}
	return a[name].Less(b[name])
}
