package doctor

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

func checkNode(p *Picture) []Finding {
	if !p.Consumer.read(Nodes) || p.releasing() {
		return nil
	}
	var out []Finding
	for _, share := range p.Contract.VirtualNodes() {
		out = append(out, checkOneNode(p, share)...)
	}
	return out
}

func checkOneNode(p *Picture, share v1alpha1.NodeShare) []Finding {
	c, name := p.Consumer, share.Name
	if c.one(VirtualNodes, p.OnConsumer, name) == nil {
		return nil
	}
	where := at(c, Nodes, "", name)
	n := c.one(Nodes, "", name)
	secret := ""
	if v := p.Contract.Spec.VirtualNode; v != nil && v.KubeconfigSecretRef != nil {
		secret = fmt.Sprintf("see whether Secret %s is in %s, with a kubeconfig that works under the key %s. Else ", v.KubeconfigSecretRef.Name, p.OnConsumer, v1alpha1.SecretKubeconfig)
	}
	if n == nil {
		return finding(NodeMissing, where, "there is none, whatever the virtual node's conditions say",
			"%slook at the pods of Deployment vk-%s in %s: until the slice is granted they fail for want of credentials; afterwards their log says why", secret, name, p.OnConsumer)
	}
	if ready := condition(n, "Ready"); field(ready, "status") != "True" {
		code, remedy := NodeNotReady, secret+"a virtual kubelet reports once a minute after its provider came back: wait that long, then look at Deployment vk-%s in %s"
		if granted := amounts(n, "status", "allocatable"); granted[v1alpha1.CPU].IsZero() || granted[v1alpha1.Memory].IsZero() {
			code, remedy = NodeWithoutCPU, "without CPU or memory Liqo calls a Node not ready: the provider withdrew all of it. Deployment vk-%s in %s serves it"
		}
		return finding(code, where, "it is not ready: "+either(seen.Said(ready), "nobody reports"), remedy, name, p.OnConsumer)
	}
	allocatable := amounts(n, "status", "allocatable")
	for _, r := range share.Resources.Names() {
		if want := share.Resources[r]; allocatable[r].Less(want) {
			return finding(NodeSmall, where, fmt.Sprintf("it has %s of %s %s", allocatable[r].Canonical(r), want.Canonical(r), r), "see the slice's findings: the Node follows what is granted")
		}
	}
	if cordoned, _, _ := unstructured.NestedBool(n.Object, "spec", "unschedulable"); cordoned {
		return finding(NodeCordoned, where, "it is cordoned: no pod is scheduled there", "kubectl uncordon %s", name)
	}
	return nil
}

// ownedBy reports whether a kind of controller made an object.
func ownedBy(u *unstructured.Unstructured, kind string) bool {
	for _, o := range u.GetOwnerReferences() {
		if o.Kind == kind {
			return true
		}
	}
	return false
}

// keptBy is the PodDisruptionBudget that allows no eviction of a pod, "" for
// none.
func keptBy(c *Cluster, pod *unstructured.Unstructured) string {
	for i := range c.Objects[Budgets] {
		b := &c.Objects[Budgets][i]
		allowed, _, _ := unstructured.NestedInt64(b.Object, "status", "disruptionsAllowed")
		if b.GetNamespace() == pod.GetNamespace() && allowed == 0 && selects(b, pod) {
			return b.GetName()
		}
	}
	return ""
}
