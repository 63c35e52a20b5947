package delivery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// kind names one of the kinds that delivery knows.
type kind string

// The kinds of rendered manifests, and those that are only watched.
const (
	kindSlice         kind = "ResourceSlice"
	kindVirtualNode   kind = "VirtualNode"
	kindOffloading    kind = "NamespaceOffloading"
	kindNamespace     kind = "Namespace"
	kindQuota         kind = "ResourceQuota"
	kindValidating    kind = "ValidatingAdmissionPolicy"
	kindValidatingUse kind = "ValidatingAdmissionPolicyBinding"
	kindMutating      kind = "MutatingAdmissionPolicy"
	kindMutatingUse   kind = "MutatingAdmissionPolicyBinding"
	kindNode          kind = "Node"
	kindForeign       kind = "ForeignCluster"
	kindPod           kind = "Pod"

	// kindContract is a contract's slice, virtual nodes and Nodes, which share
	// the slice's name: they are decided on together.
	kindContract kind = "Contract"
)

// kindInfo is how a kind is reached and watched.
type kindInfo struct {
	gvr        schema.GroupVersionResource
	namespaced bool
	// selector and fields limit the watch; "" watches all.
	selector, fields string
	// older is a further version with the same fields. optional kinds may be missing.
	older    string
	optional bool
	// extra kinds tell more of why something does not work. Nothing waits for
	// them: an account may lack the right to watch them.
	extra bool
}

const (
	managedSelector     = v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy
	virtualNodeSelector = "liqo.io/type=virtual-node"
)

var kinds = map[kind]kindInfo{
	kindSlice:       {gvr: gvr("authentication.liqo.io", "v1beta1", "resourceslices"), namespaced: true},
	kindVirtualNode: {gvr: gvr("offloading.liqo.io", "v1beta1", "virtualnodes"), namespaced: true},
	kindOffloading:  {gvr: gvr("offloading.liqo.io", "v1beta1", "namespaceoffloadings"), namespaced: true},
	kindNamespace:   {gvr: gvr("", "v1", "namespaces")},
	kindNode:        {gvr: gvr("", "v1", "nodes"), selector: virtualNodeSelector},
	kindQuota:       {gvr: gvr("", "v1", "resourcequotas"), namespaced: true, selector: managedSelector},
	// Which providers Liqo reaches, and the pods that do not run.
	kindForeign: {gvr: gvr("core.liqo.io", "v1beta1", "foreignclusters"), optional: true, extra: true},
	kindPod:     {gvr: gvr("", "v1", "pods"), namespaced: true, fields: "status.phase=Pending", extra: true},

	kindValidating:    {gvr: gvr(admission, "v1", "validatingadmissionpolicies"), selector: managedSelector},
	kindValidatingUse: {gvr: gvr(admission, "v1", "validatingadmissionpolicybindings"), selector: managedSelector},
	// v1 since Kubernetes 1.36, v1beta1 since 1.34 where it is switched on (package versions).
	kindMutating:    {gvr: gvr(admission, "v1", "mutatingadmissionpolicies"), selector: managedSelector, older: "v1beta1", optional: true},
	kindMutatingUse: {gvr: gvr(admission, "v1", "mutatingadmissionpolicybindings"), selector: managedSelector, older: "v1beta1", optional: true},
}

const admission = "admissionregistration.k8s.io"

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// key names one object.
type key struct {
	Kind            kind
	Namespace, Name string
}

func (k key) String() string {
	if k.Namespace == "" {
		return string(k.Kind) + " " + k.Name
	}
	return string(k.Kind) + " " + k.Namespace + "/" + k.Name
}

// unit is what an object is decided on together with: its contract's objects,
// or itself. Virtual nodes that have shares of a slice are named after it:
// <slice>.1, <slice>.2.
func (k key) unit() key {
	switch k.Kind {
	case kindSlice:
		return key{Kind: kindContract, Name: k.Name}
	case kindVirtualNode, kindNode:
		slice, _, _ := strings.Cut(k.Name, ".")
		return key{Kind: kindContract, Name: slice}
	}
	return k
}

// policyKinds are the kinds that keep tenants apart.
var policyKinds = []kind{kindValidating, kindValidatingUse, kindMutating, kindMutatingUse}

func isPolicy(k kind) bool { return slices.Contains(policyKinds, k) }

// stage is when a unit's turn is: what others depend on comes first, and goes
// last.
func stage(unit key, wanted bool) int {
	switch {
	case (isPolicy(unit.Kind) || unit.Kind == kindNamespace) && wanted:
		return stageGround
	case unit.Kind == kindQuota:
		return stageQuotas
	case unit.Kind == kindContract:
		return stageContracts
	case unit.Kind == kindOffloading && wanted:
		return stageOffloadings
	}
	return stagePrune
}

const (
	stageGround = iota // policies and namespaces
	stageQuotas
	stageContracts
	stageOffloadings
	stagePrune
	stages
)
