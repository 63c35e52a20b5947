package delivery

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Names of the ApplySet specification (KEP-3659), which lets other tools see
// what belongs together.
const (
	labelPartOf              = "applyset.kubernetes.io/part-of"
	labelID                  = "applyset.kubernetes.io/id"
	annotationTooling        = "applyset.kubernetes.io/tooling"
	annotationGroupKinds     = "applyset.kubernetes.io/contains-group-kinds"
	annotationMoreNamespaces = "applyset.kubernetes.io/additional-namespaces"
	tooling                  = v1alpha1.FieldManager + "/v1"
)

// ownName is the name of a fleet's Lease and ApplySet parent in a cluster.
func ownName(fleet string) string {
	if fleet == "" {
		return "fleetbroker"
	}
	return v1alpha1.CutName("fleetbroker-"+fleet, 63)
}

// applySetID is the id that the specification derives from the parent object.
func applySetID(name, namespace string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{name, namespace, "ConfigMap", ""}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// applySetParent is the object that stands for the set.
func applySetParent(name, namespace string, members []string) *unstructured.Unstructured {
	groupKinds := make([]string, 0, len(kinds))
	for k, info := range kinds {
		if k == kindNode || k == kindNamespace {
			continue
		}
		gk := string(k)
		if info.gvr.Group != "" {
			gk += "." + info.gvr.Group
		}
		groupKinds = append(groupKinds, gk)
	}
	slices.Sort(groupKinds)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name":      name,
			"namespace": namespace,
			"labels":    map[string]any{labelID: applySetID(name, namespace), v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			"annotations": map[string]any{
				annotationTooling:        tooling,
				annotationGroupKinds:     strings.Join(groupKinds, ","),
				annotationMoreNamespaces: strings.Join(members, ","),
			},
		},
	}}
}
