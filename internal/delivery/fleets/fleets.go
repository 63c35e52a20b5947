// Package fleets keeps the objects of several fleets in one cluster apart: whose an
// object is, by what name each fleet holds its Lease and the parent of its ApplySet,
// and how a fleet that has an id takes over what it applied before its objects bore
// one.
//
//	fleet without id   Lease and parent fleetbroker        manager fleetbroker
//	fleet f3k9q2abu7   Lease and parent fleetbroker-f3k9…  manager fleetbroker-f3k9…
//
// Invariants:
//
//   - An object of another fleet is never applied, patched or deleted: Other names the
//     fleet, and delivery refuses what it wanted there. A Namespace is whose annotation
//     it bears; Liqo's namespaces for peerings are everybody's.
//   - Adopt removes nothing. It takes what the fleet's own ledger names, in one pass:
//     the set's label, the mark of the fleet and the managed fields change in one
//     request for each object, under its resourceVersion; what of the old set no
//     contract names stays as it is and is named.
//   - Nobody adopts beside a daemon that still renews the Lease of the old name.
//
// Delivery calls it. Values are plain; an Elder belongs to one goroutine.
package fleets

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Names of the ApplySet specification (KEP-3659), which lets other tools see
// what belongs together.
const (
	LabelPartOf              = "applyset.kubernetes.io/part-of"
	labelID                  = "applyset.kubernetes.io/id"
	annotationTooling        = "applyset.kubernetes.io/tooling"
	annotationGroupKinds     = "applyset.kubernetes.io/contains-group-kinds"
	annotationMoreNamespaces = "applyset.kubernetes.io/additional-namespaces"
	tooling                  = v1alpha1.FieldManager + "/v1"
)

// AnnotationApplied carries the hash of what was applied last.
const AnnotationApplied = v1alpha1.Group + "/applied"

// annotationAdopted is on the parent of a set once what was applied before it had a
// name of its own was taken into it.
const annotationAdopted = v1alpha1.Group + "/adopted"

// Set is what one fleet applies to a cluster.
type Set struct {
	// Fleet is the fleet's id, "" where it has none.
	Fleet string
	// Namespace of Lease and parent.
	Namespace string
}

// Name is that of the fleet's Lease and of its set's parent, and of the field manager
// of all that it applies.
func (s Set) Name() string {
	if s.Fleet == "" {
		return v1alpha1.FieldManager
	}
	return v1alpha1.CutName(v1alpha1.FieldManager+"-"+s.Fleet, 63)
}

// old is the set that the fleet's objects were in before it had one of its own.
func (s Set) old() Set { return Set{Namespace: s.Namespace} }

// ID is the id that the specification derives from the parent object.
func (s Set) ID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Name(), s.Namespace, "ConfigMap", ""}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// Applied is the annotation that carries the hash of what the fleet applied last: on
// a Namespace, which two fleets may share, one of its own.
func (s Set) Applied(kind string) string {
	if s.Fleet == "" || kind != kindNamespace {
		return AnnotationApplied
	}
	return AnnotationApplied + "-" + s.Fleet
}

const kindNamespace = "Namespace"

// Parent is the object that stands for the set.
func (s Set) Parent(groupKinds, namespaces []string) *unstructured.Unstructured {
	annotations := map[string]any{
		annotationTooling:        tooling,
		annotationGroupKinds:     strings.Join(groupKinds, ","),
		annotationMoreNamespaces: strings.Join(namespaces, ","),
	}
	if s.Fleet != "" {
		annotations[annotationAdopted] = s.old().Name()
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name":        s.Name(),
			"namespace":   s.Namespace,
			"labels":      map[string]any{labelID: s.ID(), v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			"annotations": annotations,
		},
	}}
}

// Has reports whether an object is a member of the set, or a Namespace that the fleet
// applied.
func (s Set) Has(u *unstructured.Unstructured) bool {
	switch {
	case u == nil:
		return false
	case u.GetKind() == kindNamespace:
		return u.GetAnnotations()[s.Applied(kindNamespace)] != ""
	}
	return u.GetLabels()[LabelPartOf] == s.ID()
}

// of is the fleet whose id an object bears, "" for none.
func of(u *unstructured.Unstructured) string {
	if u.GetKind() == kindNamespace {
		return u.GetAnnotations()[v1alpha1.LabelFleet]
	}
	return u.GetLabels()[v1alpha1.LabelFleet]
}

// Other says whose an object is that the fleet may not touch, "" where it may: who
// made it by hand, or a tool of GitOps, has no set. An object of the set of before is
// another fleet's, one without an id, once what was the fleet's own was adopted.
func (s Set) Other(u *unstructured.Unstructured) string {
	if u == nil || u.GetKind() == kindNamespace && u.GetLabels()[v1alpha1.LabelTenant] == "" {
		return ""
	}
	set := u.GetLabels()[LabelPartOf]
	switch id := of(u); {
	case id != "" && id == s.Fleet:
		return ""
	case id != "":
		return "fleet " + id
	case s.Before(u):
		return "a fleet without an id"
	case set != "" && set != s.ID():
		return "the set " + set
	}
	return ""
}

// Before reports whether an object is of the set of before, or a Namespace that was
// applied then.
func (s Set) Before(u *unstructured.Unstructured) bool {
	switch {
	case s.Fleet == "" || of(u) != "":
		return false
	case u.GetKind() == kindNamespace:
		return u.GetAnnotations()[AnnotationApplied] != "" && !s.Has(u)
	}
	return u.GetLabels()[LabelPartOf] == s.old().ID()
}
