package manifests

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// policyPrefix begins the names of all policies that are rendered.
const policyPrefix = "fleetbroker-"

// admissionGroup has the kinds of admission policies.
const admissionGroup = "admissionregistration.k8s.io"

// scheme is which objects are rendered at all, by kind: in which version, and
// how they and their namespaces are called. Nothing else ever reaches a cluster.
var scheme = map[string]struct {
	apiVersion string
	named      func(namespace, name string) bool
	// older is another version that is rendered where a Cluster file asks for it.
	older string
}{
	"ResourceSlice":                    {"authentication.liqo.io/v1beta1", inTenantNamespace, ""},
	"VirtualNode":                      {"offloading.liqo.io/v1beta1", inTenantNamespace, ""},
	"NamespaceOffloading":              {"offloading.liqo.io/v1beta1", func(ns, name string) bool { return name == OffloadingName && offloadable(ns) }, ""},
	"ResourceQuota":                    {"v1", func(ns, name string) bool { return name == quotaName && offloadable(ns) }, ""},
	"Namespace":                        {"v1", func(ns, name string) bool { return ns == "" && (offloadable(name) || tenantNamespace(name)) }, ""},
	"ValidatingAdmissionPolicy":        {admissionGroup + "/v1", policyNamed, ""},
	"ValidatingAdmissionPolicyBinding": {admissionGroup + "/v1", policyNamed, ""},
	"MutatingAdmissionPolicy":          {admissionGroup + "/v1", policyNamed, admissionGroup + "/v1beta1"},
	"MutatingAdmissionPolicyBinding":   {admissionGroup + "/v1", policyNamed, admissionGroup + "/v1beta1"},
}

func inTenantNamespace(ns, name string) bool { return name != "" && tenantNamespace(ns) }

func offloadable(ns string) bool { return ns != "" && !reservedNamespace(ns) }

// tenantNamespace reports whether a namespace may be one in which Liqo keeps a
// peering: its own name for it, or one that a Cluster file chooses, but nobody
// else's.
func tenantNamespace(name string) bool {
	return strings.HasPrefix(name, "liqo-tenant-") || offloadable(name)
}

func policyNamed(ns, name string) bool { return ns == "" && PolicyName(name) != "" }

// namespaceLabels are all labels that a Namespace may be given. Labels of a
// namespace choose what is admitted there and what is put into its pods; Pod
// Security's level above all is for those who made it.
var namespaceLabels = []string{v1alpha1.LabelTenant, v1alpha1.LabelManaged, labelTenantNamespace, LabelRemoteClusterID}

// Admissible says why an object may not reach a cluster, whatever was rendered
// and patched: nil when it may. An object of a version, kind, name, label or
// annotation that no rendering gives is refused.
func Admissible(object map[string]any) error {
	id := idOf(object)
	known, ok := scheme[id.kind]
	switch {
	case !ok || id.apiVersion == "" || id.apiVersion != known.apiVersion && id.apiVersion != known.older:
		return fmt.Errorf("%s %s is of no kind that is delivered", id.apiVersion, id)
	case !known.named(id.namespace, id.name):
		return fmt.Errorf("%s has a name or namespace that is never delivered to", id)
	}
	for _, field := range []string{"labels", "annotations"} {
		for _, k := range slices.Sorted(maps.Keys(metadata(object, field))) {
			if !admissibleKey(id.kind, field, k) {
				return fmt.Errorf("%s may not have the %s %s", id, strings.TrimSuffix(field, "s"), k)
			}
		}
	}
	return nil
}

// admissibleKey reports whether a key may stand in an object's labels or
// annotations: those that are rendered, and plain ones without a domain, which
// only people read, but for the labels of Namespaces.
func admissibleKey(kind, field, k string) bool {
	domain, _, has := strings.Cut(k, "/")
	switch {
	case kind == "Namespace" && field == "labels":
		return slices.Contains(namespaceLabels, k)
	case !has, ofDomain(domain, v1alpha1.Group):
		return true
	case field == "annotations":
		return ofDomain(domain, "liqo.io") || (kind == "Namespace" || strings.Contains(kind, "AdmissionPolicy")) && neverPrune[k] != ""
	}
	return ofDomain(domain, "liqo.io") || k == v1alpha1.LabelManagedBy
}

// ofDomain reports whether a domain is another one or below it.
func ofDomain(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

func idOf(object map[string]any) objectID {
	meta, _ := object["metadata"].(map[string]any)
	get := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	return objectID{get(object, "apiVersion"), get(object, "kind"), get(meta, "namespace"), get(meta, "name")}
}

func metadata(object map[string]any, field string) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	entries, _ := meta[field].(map[string]any)
	return entries
}

// withinLimits compares what went into an overlay with what came out. Only
// plain labels and annotations may be others, and quotas may be tightened.
func withinLimits(before, after map[objectID]map[string]any) error {
	var broken []string
	for id, was := range before {
		is, ok := after[id]
		if !ok {
			broken = append(broken, fmt.Sprintf("%s is missing or renamed", id))
			continue
		}
		if why := changed(id, was, is); why != "" {
			broken = append(broken, fmt.Sprintf("%s: %s", id, why))
		} else if err := Admissible(is); err != nil {
			broken = append(broken, err.Error())
		}
	}
	for id := range after {
		if _, ok := before[id]; !ok {
			broken = append(broken, fmt.Sprintf("%s is added: overlays only patch what is rendered", id))
		}
	}
	if len(broken) == 0 {
		return nil
	}
	slices.Sort(broken)
	const shown = 3
	text := strings.Join(broken[:min(shown, len(broken))], "; ")
	if more := len(broken) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// changed says what an overlay changed of an object that it may not, "" for
// nothing.
func changed(id objectID, was, is map[string]any) string {
	for _, field := range []string{"labels", "annotations"} {
		before, after := metadata(was, field), metadata(is, field)
		for k, v := range before {
			if !reflect.DeepEqual(v, after[k]) {
				return "labels and annotations that are rendered must stay as they are, and " + k + " does not"
			}
		}
		for k := range after {
			if domain, _, has := strings.Cut(k, "/"); has && before[k] == nil {
				return "labels and annotations of " + domain + " may not be added: take a name without a domain"
			}
		}
	}
	if id.kind == "ResourceQuota" {
		if why := loosened(was, is); why != "" {
			return why
		}
		was, is = without(was, "spec"), without(is, "spec")
	}
	if !reflect.DeepEqual(without(was, "metadata"), without(is, "metadata")) {
		return "its specification must stay as it is"
	}
	if !reflect.DeepEqual(bareMetadata(was), bareMetadata(is)) {
		return "of its metadata only labels and annotations may change"
	}
	return ""
}

// loosened says what a quota allows more than before.
func loosened(was, is map[string]any) string {
	spec := func(o map[string]any) (map[string]any, map[string]any) {
		s, _ := o["spec"].(map[string]any)
		hard, _ := s["hard"].(map[string]any)
		return hard, without(s, "hard")
	}
	before, otherBefore := spec(was)
	after, otherAfter := spec(is)
	if !reflect.DeepEqual(otherBefore, otherAfter) {
		return "of a quota only the figures may change"
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		had, err := v1alpha1.ParseQuantity(fmt.Sprint(before[name]))
		if err != nil {
			return fmt.Sprintf("its rendered %s cannot be read: %v", name, err)
		}
		has, err := v1alpha1.ParseQuantity(fmt.Sprint(after[name]))
		if err != nil || has.Cmp(had) > 0 {
			return fmt.Sprintf("a quota may only be tightened, and %s is no longer at most %s", name, had.String())
		}
	}
	return ""
}

func without(object map[string]any, key string) map[string]any {
	out := maps.Clone(object)
	delete(out, key)
	return out
}

func bareMetadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return without(without(meta, "labels"), "annotations")
}
