package applier

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

// ArgoCD reads Argo CD's Applications: those with one source, those with several, and
// those that an ApplicationSet made, which are like any other. known reports whether a
// commit, in hexadecimal, has the newest manifests.
func ArgoCD(consumer, tenant string, all []*unstructured.Unstructured, known func(commit string) bool) Verdict {
	v := Verdict{Current: true}
	for _, a := range all {
		for i, from := range paths(a) {
			contracts, basis := applies(from, consumer, tenant)
			if !contracts && !basis {
				continue
			}
			if v.Trouble == "" {
				v.Trouble = argoTrouble(a)
			}
			v.Current = v.Current && (!contracts || argoCurrent(a, i, known))
		}
	}
	return v
}

// paths are an Application's, in the order of its sources: "" for one that has none.
func paths(a *unstructured.Unstructured) []string {
	sources, several, _ := unstructured.NestedSlice(a.Object, "spec", "sources")
	if !several {
		from, _, _ := unstructured.NestedString(a.Object, "spec", "source", "path")
		if from == "" {
			from, _, _ = unstructured.NestedString(a.Object, "spec", "sourceHydrator", "drySource", "path")
		}
		return []string{from}
	}
	out := make([]string, len(sources))
	for i, entry := range sources {
		source, _ := entry.(map[string]any)
		out[i], _ = source["path"].(string)
	}
	return out
}

// argoCurrent reports whether an Application has applied one of the known commits, or
// has found it applied, from its source of that index.
func argoCurrent(a *unstructured.Unstructured, source int, known func(string) bool) bool {
	done, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "phase")
	sync, _, _ := unstructured.NestedString(a.Object, "status", "sync", "status")
	return done == "Succeeded" && known(revision(a, source, "status", "operationState", "syncResult")) ||
		sync == "Synced" && known(revision(a, source, "status", "sync"))
}

// revision is the commit of one source, in a part of an Application's status: Argo CD
// writes revision where it has one source, revisions where it has several.
func revision(a *unstructured.Unstructured, source int, at ...string) string {
	list, _, _ := unstructured.NestedStringSlice(a.Object, append(at, "revisions")...)
	if source < len(list) {
		return list[source]
	}
	if len(list) > 0 || source > 0 {
		return ""
	}
	one, _, _ := unstructured.NestedString(a.Object, append(at, "revision")...)
	return one
}

// argoTrouble is what is wrong with an Application.
func argoTrouble(a *unstructured.Unstructured) string {
	if terminating(a) {
		return Named(a) + " is being deleted"
	}
	if _, has, _ := unstructured.NestedMap(a.Object, "spec", "sourceHydrator"); has {
		return Named(a) + " has a sourceHydrator, which commits what it applies: the ledger is rendered already; set spec.source"
	}
	list, _, _ := unstructured.NestedSlice(a.Object, "status", "conditions")
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		if kind, _ := c["type"].(string); strings.HasSuffix(kind, "Error") {
			return Named(a) + ": " + seen.Message(c)
		}
	}
	// While Argo CD tries again what has failed, it calls it Running.
	retried, _, _ := unstructured.NestedInt64(a.Object, "status", "operationState", "retryCount")
	if done, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "phase"); done == "Failed" || done == "Error" || done == "Running" && retried > 0 {
		message, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "message")
		return Named(a) + ": " + escape.Words(message)
	}
	automated, has, _ := unstructured.NestedMap(a.Object, "spec", "syncPolicy", "automated")
	sync, _, _ := unstructured.NestedString(a.Object, "status", "sync", "status")
	if (!has || automated["enabled"] == false) && sync == "OutOfSync" {
		return Named(a) + " does not sync by itself: sync it, or set its syncPolicy.automated"
	}
	return ""
}
