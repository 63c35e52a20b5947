// Package seen reads what objects of a cluster say of themselves: conditions and
// quantities. It is pure; delivery and doctor call it, with objects that anybody may
// have written.
package seen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Condition is the newest entry of a type, nil for none: Liqo writes some types twice.
func Condition(u *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var found map[string]any
	for _, entry := range list {
		c, ok := entry.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		was, _ := found["lastTransitionTime"].(string)
		is, _ := c["lastTransitionTime"].(string)
		if found == nil || is >= was { // RFC 3339 in UTC orders as text
			found = c
		}
	}
	return found
}

// Said is a condition's reason and message, as far as it has them, cut where they are long.
func Said(condition map[string]any) string {
	reason, _ := condition["reason"].(string)
	message := Message(condition)
	if reason == "" || message == "" {
		return escape.Words(reason + message)
	}
	return escape.Words(reason + ": " + message)
}

// Message is a condition's message, cut where it is long.
func Message(condition map[string]any) string {
	message, _ := condition["message"].(string)
	return escape.Words(message)
}

// Bounds of a list of resources: it is the cluster's word, or a provider's in whose slice it
// is, and goes into what is reported of each contract.
const (
	maxResources = 64
	maxResource  = 317 // bytes of a name: a domain, a slash, and a label
)

// Resources reads quantities at a path; one that cannot be read is left out, so that it
// counts as not granted. Of too many those without a domain are read, then the first by name.
func Resources(u *unstructured.Unstructured, path ...string) v1alpha1.Resources {
	raw, _, _ := unstructured.NestedMap(u.Object, path...)
	names := make([]string, 0, len(raw))
	for name := range raw {
		if len(name) <= maxResource {
			names = append(names, name)
		}
	}
	if len(names) > maxResources {
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
		})
		names = names[:maxResources]
	}
	out := make(v1alpha1.Resources, len(names))
	for _, name := range names {
		if amount, err := v1alpha1.ParseAmount(name, fmt.Sprint(raw[name])); err == nil {
			out[name] = amount
		}
	}
	return out
}

// maxOthers is how many resources are reported that nobody asked for.
const maxOthers = 8

// Of is r for who asked for some resources: of others the first few by name.
func Of(r, asked v1alpha1.Resources) v1alpha1.Resources {
	others := 0
	for _, name := range r.Names() {
		if _, is := asked[name]; !is {
			if others++; others > maxOthers {
				delete(r, name)
			}
		}
	}
	return r
}

// Granted reads a slice's answer: what was granted, or why nothing was. There
// is no observedGeneration; who wants to know whether a resize has arrived
// compares what is granted with what was asked.
func Granted(slice *unstructured.Unstructured) (v1alpha1.Resources, string) {
	c := Condition(slice, "Resources")
	switch c["status"] {
	case "Accepted":
		return Resources(slice, "status", "resources"), ""
	case "Denied":
		for _, field := range []string{"message", "reason"} {
			if text, _ := c[field].(string); text != "" {
				return nil, escape.Words(text)
			}
		}
		return nil, "the provider denied the slice without a reason"
	}
	return nil, ""
}
