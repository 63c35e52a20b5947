package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

func checkOffloading(p *Picture) []Finding {
	if p.Contract.Spec.Offload == nil || p.releasing() {
		return nil
	}
	var out []Finding
	for _, ns := range p.Contract.Spec.Offload.Namespaces {
		out = append(out, checkNamespace(p, ns.Name)...)
	}
	return out
}

func checkNamespace(p *Picture, name string) []Finding {
	c := p.Consumer
	if !c.read(Namespaces) || !c.read(Offloadings) {
		return nil
	}
	const again = "the daemon puts it back within seconds: see what takes it away"
	where := at(c, Namespaces, "", name)
	ns := c.one(Namespaces, "", name)
	intent := v1alpha1.IntentValue(p.Contract.Metadata.Namespace, p.Contract.Spec.Intent.Name)
	switch {
	case ns == nil:
		return finding(NamespaceMissing, where, "it does not exist", "create it, or set create: true in the intent's offload.namespaces")
	case !slices.Contains(strings.Split(ns.GetAnnotations()[v1alpha1.AnnotationIntents], ","), intent):
		return finding(NamespaceUnlisted, where, "its annotation "+v1alpha1.AnnotationIntents+" does not list "+intent+": new pods get no toleration for the Node", again)
	case ns.GetLabels()[v1alpha1.LabelTenant] == "":
		return finding(NamespaceUnlabelled, where, "it has no label "+v1alpha1.LabelTenant+": the policies do not see it", again)
	}
	o := c.one(Offloadings, name, manifests.OffloadingName)
	where = at(c, Offloadings, name, manifests.OffloadingName)
	if o == nil {
		return finding(OffloadingMissing, where, "it does not exist: pods on the virtual node end in OffloadingBackOff", again)
	}
	return offloadingStatus(p, o, ns, where)
}

// offloadingStatus goes by what Liqo v1.2.0 says and what it keeps to itself.
func offloadingStatus(p *Picture, o, ns *unstructured.Unstructured, where string) []Finding {
	if _, written, _ := unstructured.NestedSlice(o.Object, "spec", "clusterSelector", "nodeSelectorTerms"); !written {
		return finding(SelectorMissing, where, "its clusterSelector is not written out: Liqo fails to update it and says nothing", "set spec.clusterSelector.nodeSelectorTerms, [] for every provider")
	}
	if keys := unlikeKeys(o); len(keys) > 0 {
		return finding(SelectorNarrow, where, "it selects by "+strings.Join(keys, ", ")+", which is not the same on all virtual nodes of a provider: Liqo deletes and creates the remote namespace again every few seconds",
			"select by %s alone; pods are told apart by the Nodes' taints", labelRemoteCluster)
	}
	seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	phase := text(o, "status", "offloadingPhase")
	switch {
	case seen != o.GetGeneration():
		return finding(OffloadingUnseen, where, "Liqo has not looked at it", "see whether liqo-controller-manager runs on %s", p.Consumer.Name)
	case phase == "NoClusterSelected":
		return finding(OffloadingUnmatched, where, "no virtual node matches it: "+phase, "see the findings on virtual node and Node: it becomes Ready with the first Node")
	case phase != "Ready":
		return finding(OffloadingFailed, where, "it is "+either(phase, "without a phase")+remoteTrouble(o, p.ProviderID), "see whether a namespace of that name on %s belongs to another account, and the log of liqo-controller-manager", p.Provider.Name)
	case ns.GetLabels()[labelScheduling] != "true":
		return finding(NamespaceUnscheduled, at(p.Consumer, Namespaces, "", ns.GetName()), "it has no Liqo label "+labelScheduling+": new pods are not admitted to virtual nodes", "see what prunes labels that it does not know; changing the NamespaceOffloading puts it back")
	}
	return nil
}

// unlikeKeys are the labels that a selector goes by and that differ between
// virtual nodes of one provider.
func unlikeKeys(o *unstructured.Unstructured) []string {
	terms, _, _ := unstructured.NestedSlice(o.Object, "spec", "clusterSelector", "nodeSelectorTerms")
	var out []string
	for _, term := range terms {
		m, _ := term.(map[string]any)
		list, _ := m["matchExpressions"].([]any)
		for _, e := range list {
			expression, _ := e.(map[string]any)
			key := field(expression, "key")
			if key == "kubernetes.io/hostname" || key == v1alpha1.LabelContract || key == v1alpha1.LabelIntent {
				out = append(out, key)
			}
		}
	}
	return out
}

// remoteTrouble is what the conditions say of one provider.
func remoteTrouble(o *unstructured.Unstructured, provider string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "remoteNamespacesConditions", provider)
	for _, entry := range list {
		if c, ok := entry.(map[string]any); ok && field(c, "type") == "Ready" && field(c, "status") != "True" {
			return " (" + seen.Said(c) + ")"
		}
	}
	return ""
}

func checkPods(p *Picture) []Finding {
	if p.Contract.Spec.Offload == nil || p.releasing() || !p.Consumer.read(Pods) {
		return nil
	}
	var out []Finding
	for _, ns := range p.Contract.Spec.Offload.Namespaces {
		for _, d := range p.Consumer.all(DaemonSets, func(u *unstructured.Unstructured) bool { return u.GetNamespace() == ns.Name }) {
			out = append(out, finding(DaemonSetInside, at(p.Consumer, DaemonSets, ns.Name, d.GetName()), "Liqo loses the node affinity of its pods, and they are made without end", "take it out of the namespace")...)
		}
		for _, pod := range p.Consumer.all(Pods, func(u *unstructured.Unstructured) bool { return u.GetNamespace() == ns.Name }) {
			out = append(out, checkPod(p, pod)...)
		}
	}
	return out
}

// checkPod says why a pod does not run.
func checkPod(p *Picture, pod *unstructured.Unstructured) []Finding {
	where := at(p.Consumer, Pods, pod.GetNamespace(), pod.GetName())
	node := text(pod, "spec", "nodeName")
	reason := text(pod, "status", "reason")
	switch {
	case reason == "OffloadingBackOff" && p.isNode(node):
		return finding(PodBackOff, where, "OffloadingBackOff: the provider does not take it", "see the findings on offloading and on the provider's Tenant")
	case reason == "OffloadingAborted" && p.isNode(node):
		return finding(PodAborted, where, "OffloadingAborted: its copy on the provider was deleted, and this is final", "delete the pod: its controller makes another. If it comes again, see the provider's Tenant (Drained?)")
	case text(pod, "status", "phase") != "Pending":
		return nil
	}
	if p.isNode(node) {
		return finding(PodNotRunning, where, "it is bound to the Node and does not run on the provider",
			"see its events: \"quota usage exceeded\" and \"failed getting quota\" are the provider's Quota; else the provider's nodes are full, or its image cannot be pulled")
	}
	scheduled := condition(pod, "PodScheduled")
	if node != "" || field(scheduled, "status") != "False" {
		return nil
	}
	if !tolerates(pod, v1alpha1.IntentValue(p.Contract.Metadata.Namespace, p.Contract.Spec.Intent.Name)) && olderThanOffloading(p.Consumer, pod) {
		return finding(PodTooOld, where, "it is older than the namespace's offloading and tolerates no virtual node: it stays Pending until it is deleted", "delete the pod: its controller makes one that does")
	}
	return finding(PodFitsNowhere, where, "it fits no node: "+field(scheduled, "message"), "compare its requests with the contract's: %s", sizes(p.Contract.Spec.Resources))
}

func tolerates(pod *unstructured.Unstructured, intent string) bool {
	list, _, _ := unstructured.NestedSlice(pod.Object, "spec", "tolerations")
	for _, t := range list {
		if m, _ := t.(map[string]any); m["key"] == v1alpha1.TaintIntent && m["value"] == intent {
			return true
		}
	}
	return false
}

// olderThanOffloading reports whether a pod was made before its namespace was
// offloaded, or in the same second.
func olderThanOffloading(c *Cluster, pod *unstructured.Unstructured) bool {
	o := c.one(Offloadings, pod.GetNamespace(), manifests.OffloadingName)
	if o == nil {
		return true
	}
	made, offloaded := pod.GetCreationTimestamp(), o.GetCreationTimestamp()
	return !offloaded.Before(&made)
}

func sizes(r v1alpha1.Resources) string {
	var parts []string
	for _, name := range r.Names() {
		parts = append(parts, r[name].Canonical(name)+" "+name)
	}
	return strings.Join(parts, ", ")
}

// selects reports whether a budget is for a pod.
func selects(budget, pod *unstructured.Unstructured) bool {
	raw, ok, _ := unstructured.NestedMap(budget.Object, "spec", "selector")
	if !ok {
		return false
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && s.Matches(labels.Set(pod.GetLabels()))
}

func checkProvider(p *Picture) []Finding {
	c := p.Provider
	var out []Finding
	if p.Consumer.read(Slices) && c.read(Slices) && p.Consumer.one(Slices, p.OnConsumer, p.sliceName()) != nil {
		s := c.one(Slices, p.OnProvider, p.sliceName())
		accepted := field(condition(p.Consumer.one(Slices, p.OnConsumer, p.sliceName()), "Resources"), "status") == "Accepted"
		if s == nil && accepted {
			return finding(CopyMissing, at(c, Slices, p.OnProvider, p.sliceName()), "the provider has no copy of the slice, though the consumer's says Accepted: the Tenant was Drained, or somebody deleted it while replication stood still",
				"change an annotation of the consumer's slice: Liqo replicates it again only then")
		}
	}
	out = append(out, checkQuota(p)...)
	if c.read(Nodes) && len(c.all(Nodes, offered)) == 0 {
		out = append(out, finding(NothingOffered, "cluster "+c.Name, "no node of it is offered", "label nodes %s=<flavor> or node-role.fluidos.eu/resources=true", v1alpha1.Group+"/pool")...)
	}
	return out
}

// offered reports whether an agent offers a node.
func offered(n *unstructured.Unstructured) bool {
	l := n.GetLabels()
	return l[v1alpha1.Group+"/pool"] != "" || l["node-role.fluidos.eu/resources"] == "true"
}

// checkQuota looks at what the provider's webhook holds the contract to.
func checkQuota(p *Picture) []Finding {
	c := p.Provider
	if !c.read(Quotas) || p.releasing() {
		return nil
	}
	name := p.sliceName()
	mine := c.all(Quotas, func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == p.OnProvider && strings.HasPrefix(u.GetName(), name+"-")
	})
	if len(mine) == 0 {
		if s := c.one(Slices, p.OnProvider, name); s == nil || field(condition(s, "Resources"), "status") != "Accepted" {
			return nil // nothing granted, nothing to hold to
		}
		return finding(QuotaMissing, at(c, Quotas, p.OnProvider, name+"-…"), `there is none: pods are refused with "failed getting quota"`, "see the provider's Tenant, and the log of its liqo-controller-manager")
	}
	q := mine[0]
	where := at(c, Quotas, q.GetNamespace(), q.GetName())
	quota := amounts(q, "spec", "resources")
	for _, r := range p.Contract.Spec.Resources.Names() {
		if want := p.Contract.Spec.Resources[r]; quota[r] != want {
			return finding(QuotaDiffers, where, fmt.Sprintf("it allows %s %s, the contract says %s", quota[r].Canonical(r), r, want.Canonical(r)), "see the slice's findings: Liqo makes the Quota from what is granted, and undoes other changes")
		}
	}
	if cordoned, _, _ := unstructured.NestedBool(q.Object, "spec", "cordoned"); cordoned {
		return finding(QuotaCordoned, where, "it is cordoned: new pods are refused", "take the annotations liqo.io/cordon and liqo.io/cordon-tenant off the provider's slice")
	}
	if have := v1alpha1.Enforcement(text(q, "spec", "limitsEnforcement")); weaker(have, p.Enforcement) {
		return finding(EnforcementWeak, where, fmt.Sprintf("Liqo's limits enforcement there is %s, the intent demands %s", have, p.Enforcement),
			"start the provider's liqo-controller-manager with --default-limits-enforcement=%s, or lower the intent's enforcement", p.Enforcement)
	}
	return nil
}

// weaker reports whether a level is less than what is demanded.
func weaker(have, want v1alpha1.Enforcement) bool {
	order := []v1alpha1.Enforcement{v1alpha1.EnforceNone, v1alpha1.EnforceSoft, v1alpha1.EnforceHard}
	return slices.Index(order, have) < slices.Index(order, want) && have != ""
}
