package applier

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Flux is what a consumer has of Flux.
type Flux struct {
	Kustomizations, Sources []*unstructured.Unstructured
	// Ready returns the condition by which an object is judged; empty: it has none.
	Ready func(*unstructured.Unstructured) map[string]any
}

// Verdict reads Kustomizations and their sources. known reports whether a commit, in
// hexadecimal, has the newest manifests.
func (f Flux) Verdict(consumer, tenant string, known func(string) bool) Verdict {
	v, followed := Verdict{Current: true}, false
	for _, k := range f.Kustomizations {
		from, _, _ := unstructured.NestedString(k.Object, "spec", "path")
		contracts, basis := applies(from, consumer, tenant)
		if !contracts && !basis {
			continue
		}
		followed = followed || contracts
		if v.Trouble == "" {
			v.Trouble = f.trouble(k, nil)
		}
		v.Current = v.Current && (!contracts || fluxCurrent(k, known))
	}
	if !followed && v.Trouble == "" {
		v.Trouble = fmt.Sprintf("no Kustomization of Flux on cluster %s applies %s: see install/flux", consumer, path.Join(manifests.Dir(consumer), tenant))
	}
	return v
}

// trouble is what is wrong with a Kustomization, with its source or with what it
// waits for; behind are those that wait for it.
func (f Flux) trouble(k *unstructured.Unstructured, behind []*unstructured.Unstructured) string {
	if text := f.stopped(k, "kustomization"); text != "" {
		return text
	}
	ref, _, _ := unstructured.NestedMap(k.Object, "spec", "sourceRef")
	if source := referred(f.Sources, k, ref); source != nil {
		if text := f.stopped(source, "source git"); text != "" {
			return text
		}
	}
	awaited, _, _ := unstructured.NestedSlice(k.Object, "spec", "dependsOn")
	for _, entry := range awaited {
		ref, _ := entry.(map[string]any)
		first := referred(f.Kustomizations, k, ref)
		if first == nil || slices.Contains(behind, first) {
			continue // Flux itself says so
		}
		if text := f.trouble(first, append(behind, k)); text != "" {
			return text
		}
	}
	return ""
}

// referred is what a reference of an object names, nil when it is not there. One
// without a kind is to a Kustomization, one without a namespace to its own.
func referred(all []*unstructured.Unstructured, from *unstructured.Unstructured, ref map[string]any) *unstructured.Unstructured {
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	kind, namespace = cmp.Or(kind, "Kustomization"), cmp.Or(namespace, from.GetNamespace())
	for _, u := range all {
		if u.GetKind() == kind && u.GetName() == name && u.GetNamespace() == namespace {
			return u
		}
	}
	return nil
}

// stopped says why an object of Flux does not do its work.
func (f Flux) stopped(u *unstructured.Unstructured, command string) string {
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
		return fmt.Sprintf("%s is suspended: flux resume %s %s -n %s", Named(u), command, u.GetName(), u.GetNamespace())
	}
	if terminating(u) {
		return Named(u) + " is being deleted"
	}
	if ready := f.Ready(u); ready["status"] == "False" {
		return Named(u) + ": " + seen.Message(ready)
	}
	return ""
}

// fluxCurrent reports whether a Kustomization has applied one of the known
// commits. One whose health checks fail has: they come after pruning.
func fluxCurrent(k *unstructured.Unstructured, known func(string) bool) bool {
	field := "lastAppliedRevision"
	if ready := seen.Condition(k, "Ready"); ready["status"] == "False" && ready["reason"] == "HealthCheckFailed" {
		field = "lastAttemptedRevision"
	}
	revision, _, _ := unstructured.NestedString(k.Object, "status", field)
	_, hash, ok := strings.Cut(revision, "@sha1:")
	return ok && known(hash)
}
