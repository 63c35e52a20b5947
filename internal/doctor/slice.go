package doctor

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

func checkSlice(p *Picture) []Finding {
	c := p.Consumer
	if !c.read(Slices) {
		return nil
	}
	name := p.sliceName()
	where := at(c, Slices, p.OnConsumer, name)
	s := c.one(Slices, p.OnConsumer, name)
	if s == nil {
		if other := c.all(Slices, func(u *unstructured.Unstructured) bool { return u.GetName() == name }); len(other) > 0 {
			return finding(SliceElsewhere, at(c, Slices, other[0].GetNamespace(), name), "a slice of this name is in another namespace, and Liqo allows one in a cluster",
				"delete it, or set spec.liqo.tenantNamespace: %s in clusters/%s.yaml", other[0].GetNamespace(), c.Name)
		}
		if p.releasing() {
			return nil
		}
		return finding(SliceMissing, where, "it does not exist", "see why it is not applied: the contract's reason, or the daemon's log")
	}
	if out := sliceMarks(p, s, where); len(out) > 0 {
		return out
	}
	if s.GetDeletionTimestamp() != nil {
		return finding(SliceDeleting, where, "it is being deleted and waits for its copy on the provider to go",
			"bring the provider back; if it is lost for good: kubectl annotate foreigncluster %s liqo.io/foreign-cluster-permanently-unreachable=true", p.ProviderID)
	}
	return append(sliceStatus(p, s, where), openDoor(p)...)
}

// classDefault is what closes Liqo's class default to other clusters on a provider
// (install/provider/class-default.yaml), and the label of a peering's namespace for
// which it is open.
const (
	classDefault = "fleetbroker-class-default"
	labelDoor    = v1alpha1.Group + "/class-default"
)

// closed reports whether a provider refuses slices of Liqo's own class to the
// contract's consumer.
func (p *Picture) closed() bool {
	ns := p.Provider.one(Namespaces, "", p.OnProvider)
	return p.Provider.one(Validating, "", classDefault) != nil && p.Provider.one(ValidatingBindings, "", classDefault) != nil &&
		(ns == nil || ns.GetLabels()[labelDoor] != "open")
}

// openDoor says that consumers can take more than they have contracts for where the
// provider's agent grants what the ledger says, by asking for Liqo's own class.
func openDoor(p *Picture) []Finding {
	if p.Contract.Spec.Class == "" || p.Contract.Spec.Class == manifests.ClassDefault || p.closed() ||
		!p.Provider.read(Validating) || !p.Provider.read(ValidatingBindings) || !p.Provider.read(Namespaces) {
		return nil
	}
	return finding(SliceClassOpen, at(p.Provider, Namespaces, "", p.OnProvider), "Liqo's slice class default is open to "+p.Consumer.Name+": who may make slices there gets whatever it asks for, whatever the contracts say",
		"apply install/provider to %s, or take the label %s off the namespace where no other market needs it", p.Provider.Name, labelDoor)
}

// sliceMarks are the labels without which Liqo does nothing, or half, and says
// nothing of it.
func sliceMarks(p *Picture, s *unstructured.Unstructured, where string) []Finding {
	const again = "the daemon puts it back within seconds: see what takes it away"
	for _, mark := range []struct {
		code        Code
		label, what string
	}{
		{SliceNoRemoteID, labelRemoteID, "nothing is replicated, and its status stays empty"},
		{SliceNoClusterID, labelRemoteCluster, "it is granted and gets no virtual node"},
	} {
		if got := s.GetLabels()[mark.label]; got != p.ProviderID {
			return finding(mark.code, where, fmt.Sprintf("its label %s is %q and not %s: %s", mark.label, got, p.ProviderID, mark.what), again)
		}
	}
	switch {
	case s.GetLabels()[labelReplication] != "true":
		return finding(SliceNotReplicated, where, "it has no label "+labelReplication+": nothing is replicated, and its status stays empty", again)
	case !p.releasing() && p.Contract.Spec.ByHand() && s.GetAnnotations()[annotationCreate] != "false":
		return finding(SliceDoubleNode, where, "its annotation "+annotationCreate+" is not false: Liqo makes a virtual node of all of it next to those of the intent", again)
	case !p.releasing() && !p.Contract.Spec.ByHand() && s.GetAnnotations()[annotationCreate] != "true":
		return finding(SliceNoNode, where, "its annotation "+annotationCreate+" is not true: it is granted and gets no virtual node", again)
	}
	return nil
}

// sliceStatus is how the provider has answered.
func sliceStatus(p *Picture, s *unstructured.Unstructured, where string) []Finding {
	authentication, resources := condition(s, "Authentication"), condition(s, "Resources")
	class := text(s, "spec", "class")
	switch {
	case field(resources, "status") == "Denied":
		return finding(SliceDenied, where, "the provider denies it: "+seen.Said(resources), "ask those who run %s; after half a minute the contract goes elsewhere if it can", p.Provider.Name)
	case authentication == nil && resources == nil && (class == "" || class == manifests.ClassDefault) && p.Provider.read(ValidatingBindings) && p.closed():
		return finding(SliceUnanswered, where, "the provider refuses slices of class default to other clusters, and its agent does not enforce the ledger, so that contracts are of that class",
			"let the agent of %s enforce (install/agent), or use the component not-enforced of install/provider there", p.Provider.Name)
	case authentication == nil && resources == nil:
		return finding(SliceUnanswered, where, "the provider has not answered: it was not replicated there", "see the findings on the peering; else whether liqo-crd-replicator runs on %s", p.Consumer.Name)
	case field(resources, "status") != "Accepted":
		return finding(SliceClassUnanswered, where, "nobody on the provider answers slices of class "+class, "see whether the agent of %s runs and may write slices' statuses (install/agent)", p.Provider.Name)
	}
	spec, granted := amounts(s, "spec", "resources"), amounts(s, "status", "resources")
	for _, name := range spec.Names() {
		if granted[name] != spec[name] {
			return finding(SliceShrunk, where, fmt.Sprintf("%s of %s %s is granted, though it says Accepted: a resize that is not followed, or less was given",
				granted[name].Canonical(name), spec[name].Canonical(name), name), "see the provider's Tenant (Cordoned?) and its agent's log")
		}
	}
	for _, name := range granted.Names() {
		if want, asked := spec[name]; !asked && !granted[name].IsZero() {
			return finding(SliceKeptKey, where, fmt.Sprintf("%s %s is granted and not asked for: Liqo keeps a key that was taken away", granted[name].Canonical(name), name),
				"write %s: \"%s\" into the slice once", name, want.Canonical(name))
		}
	}
	return nil
}

func checkVirtualNode(p *Picture) []Finding {
	if !p.Consumer.read(VirtualNodes) {
		return nil
	}
	var out []Finding
	for _, share := range p.Contract.VirtualNodes() {
		out = append(out, checkOneVirtualNode(p, share)...)
	}
	return out
}

func checkOneVirtualNode(p *Picture, share v1alpha1.NodeShare) []Finding {
	c, name := p.Consumer, share.Name
	where := at(c, VirtualNodes, p.OnConsumer, name)
	vn := c.one(VirtualNodes, p.OnConsumer, name)
	slice := c.one(Slices, p.OnConsumer, p.sliceName())
	switch {
	case vn == nil && p.releasing():
		return nil
	case vn == nil:
		if node := c.one(Nodes, "", name); node != nil && node.GetLabels()[labelNodeType] != virtualNodeType {
			return finding(VirtualNodeNameTaken, at(c, Nodes, "", name), "a Node of the slice's name exists, so that Liqo refuses the virtual node, which only its log shows", "rename or delete that Node")
		}
		return finding(VirtualNodeMissing, where, "it does not exist", "see why it is not applied: the contract's reason, or the daemon's log")
	case vn.GetDeletionTimestamp() != nil:
		return draining(p, where, name)
	}
	value := v1alpha1.IntentValue(p.Contract.Metadata.Namespace, p.Contract.Spec.Intent.Name)
	taints, _, _ := unstructured.NestedSlice(vn.Object, "spec", "taints")
	if !hasTaint(taints, value) {
		return finding(VirtualNodeUntainted, where, "it has no taint of its intent: pods of other tenants can run on it", "the daemon puts it back within seconds: see what takes it away, and whether the policy fleetbroker-virtualnode-guard is there")
	}
	if p.Contract.Spec.ByHand() {
		size := amounts(vn, "spec", "resourceQuota", "hard")
		for _, r := range share.Resources.Names() {
			if want := share.Resources[r]; size[r] != want {
				return finding(VirtualNodeSize, where, fmt.Sprintf("its resourceQuota has %s %s, its share is %s", size[r].Canonical(r), r, want.Canonical(r)), "the daemon puts it back within seconds: see what changes it")
			}
		}
		return nil
	}
	if slice != nil && len(vn.GetOwnerReferences()) == 0 {
		return finding(VirtualNodeOrphan, where, "the slice has not adopted it, so that it gets neither credentials nor a size",
			"change an annotation of the slice: Liqo looks only then (kubectl annotate resourceslices.authentication.liqo.io -n %s %s fleetbroker.io/poke=again --overwrite)", p.OnConsumer, name)
	}
	return nil
}

// Label of the Nodes that virtual nodes become.
const (
	labelNodeType   = "liqo.io/type"
	virtualNodeType = "virtual-node"
)

func hasTaint(taints []any, value string) bool {
	for _, t := range taints {
		m, _ := t.(map[string]any)
		if m["key"] == v1alpha1.TaintIntent && m["value"] == value && m["effect"] == "NoSchedule" {
			return true
		}
	}
	return false
}

// draining says what holds a drain up.
func draining(p *Picture, where, node string) []Finding {
	left := p.Consumer.all(Pods, func(u *unstructured.Unstructured) bool {
		return text(u, "spec", "nodeName") == node && !ownedBy(u, "DaemonSet")
	})
	if len(left) == 0 {
		return nil
	}
	var out []Finding
	for _, pod := range left {
		if budget := keptBy(p.Consumer, pod); budget != "" {
			out = append(out, finding(DrainBlocked, at(p.Consumer, Pods, pod.GetNamespace(), pod.GetName()),
				"PodDisruptionBudget "+budget+" allows no disruption: it is not evicted, and its capacity stays taken",
				"let the team run it elsewhere, or change the budget")...)
		}
	}
	if len(out) == 0 {
		return finding(DrainWaits, where, fmt.Sprintf("it is being drained: %d pods are left", len(left)), "wait: pods get their grace period, and Liqo looks every ten seconds")
	}
	return out
}
