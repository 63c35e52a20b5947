package applier

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

func decode(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = json.Unmarshal(raw, &u.Object) // whole numbers as int64, as a client reads them
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func TestFluxVerdict(t *testing.T) {
	kustomization := func(name, spec, status string) string {
		return "kind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\nspec: {sourceRef: {kind: GitRepository, name: ledger}, " + spec + "}\nstatus: {" + status + "}\n"
	}
	const ready = `conditions: [{type: Ready, status: "True"}], `
	const source = "kind: GitRepository\nmetadata: {name: ledger, namespace: flux-system}\n"
	cases := map[string]struct {
		kustomizations []string
		source         string
		trouble        string
		current        bool
	}{
		"nothing applies": {trouble: "no Kustomization of Flux on cluster rome applies manifests/rome/vision", current: true},
		"another tenant's": {[]string{kustomization("nlp", "path: ./manifests/rome/nlp, suspend: true", "")},
			source, "no Kustomization of Flux", true},
		"applied": {[]string{kustomization("all", "path: ./manifests/rome", ready+"lastAppliedRevision: ledger@sha1:aaaa")}, source, "", true},
		"behind":  {[]string{kustomization("all", "path: ./manifests/rome", ready+"lastAppliedRevision: ledger@sha1:0000")}, source, "", false},
		"at work": {[]string{kustomization("all", "path: /manifests/rome/vision/", `conditions: [{type: Ready, status: Unknown}], lastAttemptedRevision: ledger@sha1:aaaa`)}, source, "", false},
		"not healthy yet": {[]string{kustomization("all", "path: manifests/rome/vision",
			`conditions: [{type: Ready, status: "False", reason: HealthCheckFailed, message: timeout waiting}], lastAttemptedRevision: ledger@sha1:aaaa`)},
			source, "Kustomization flux-system/all: timeout waiting", true},
		"cannot be built": {[]string{kustomization("all", "path: manifests/rome/vision",
			`conditions: [{type: Ready, status: "False", reason: BuildFailed, message: bad patch}], lastAttemptedRevision: ledger@sha1:aaaa`)},
			source, "Kustomization flux-system/all: bad patch", false},
		"suspended": {[]string{kustomization("all", "path: manifests/rome, suspend: true", ready+"lastAppliedRevision: ledger@sha1:0000")},
			source, "is suspended: flux resume kustomization all -n flux-system", false},
		"the namespaces' is suspended": {[]string{
			kustomization("namespaces", "path: manifests/rome/namespaces, suspend: true", ""),
			kustomization("vision", "path: manifests/rome/vision", ready+"lastAppliedRevision: ledger@sha1:aaaa")},
			source, "Kustomization flux-system/namespaces is suspended", true},
		"what it waits for fails": {[]string{
			kustomization("basis", "path: clusters/rome", `conditions: [{type: Ready, status: "False", message: bad patch}]`),
			kustomization("vision", "path: manifests/rome/vision, dependsOn: [{name: basis}, {name: gone}]", "lastAppliedRevision: ledger@sha1:aaaa")},
			source, "Kustomization flux-system/basis: bad patch", true},
		"both wait for the other": {[]string{
			kustomization("a", "path: manifests/rome/vision, dependsOn: [{name: b}]", ready+"lastAppliedRevision: ledger@sha1:aaaa"),
			kustomization("b", "path: clusters/rome, dependsOn: [{name: a}]", ready)}, source, "", true},
		"its source is suspended": {[]string{kustomization("all", "path: manifests/rome", ready+"lastAppliedRevision: ledger@sha1:0000")},
			source + "spec: {suspend: true}\n", "GitRepository flux-system/ledger is suspended: flux resume source git ledger", false},
		"its source fails": {[]string{kustomization("all", "path: manifests/rome", ready+"lastAppliedRevision: ledger@sha1:0000")},
			source + `status: {conditions: [{type: Ready, status: "False", message: authentication required}]}` + "\n", "GitRepository flux-system/ledger: authentication required", false},
	}
	for name, c := range cases {
		f := Flux{decode(t, c.kustomizations...), decode(t, c.source), func(u *unstructured.Unstructured) map[string]any { return seen.Condition(u, "Ready") }}
		v := f.Verdict("rome", "vision", func(hash string) bool { return hash == "aaaa" })
		if !strings.Contains(v.Trouble, c.trouble) || (c.trouble == "") != (v.Trouble == "") || v.Current != c.current {
			t.Errorf("%s: got %+v, want trouble %q, current %t", name, v, c.trouble, c.current)
		}
	}
}

func TestArgoVerdict(t *testing.T) {
	application := func(rest string) string {
		return "kind: Application\nmetadata: {name: vision, namespace: argocd}\nspec: {source: {path: manifests/rome/vision}, syncPolicy: {automated: {prune: true}}}\n" + rest
	}
	const manual = "kind: Application\nmetadata: {name: vision, namespace: argocd}\nspec: {source: {path: manifests/rome/vision}}\n"
	const several = "kind: Application\nmetadata: {name: rome, namespace: argocd}\nspec: {sources: [{path: apps/rome}, {path: manifests/rome/vision}], syncPolicy: {automated: {}}}\n"
	cases := map[string]struct {
		application, trouble string
		current              bool
	}{
		"in another cluster": {"kind: Application\nspec: {source: {path: other}}\n", "", true},
		"synced":             {application("status: {sync: {status: Synced, revision: aaaa}}\n"), "", true},
		"behind":             {application("status: {sync: {status: Synced, revision: '0000'}}\n"), "", false},
		"synced, not healthy, differs by defaults": {application("status: {sync: {status: OutOfSync, revision: aaaa}, operationState: {phase: Succeeded, syncResult: {revision: aaaa}}}\n"), "", true},
		"under way": {application("status: {sync: {status: OutOfSync, revision: aaaa}, operationState: {phase: Running, syncResult: {revision: aaaa}}}\n"), "", false},
		"failed":    {application("status: {operationState: {phase: Failed, message: denied by a policy}}\n"), "Application argocd/vision: denied by a policy", false},
		"tried again": {application("status: {operationState: {phase: Running, retryCount: 2, message: 'denied by a policy. Retrying attempt #2'}}\n"),
			"Application argocd/vision: denied by a policy. Retrying", false},
		"cannot be compared": {application("status: {conditions: [{type: ComparisonError, message: no such path}]}\n"),
			"Application argocd/vision: no such path", false},
		"several sources, ours is at a known commit": {several + "status: {sync: {status: Synced, revisions: ['1111', aaaa]}}\n", "", true},
		"several sources, another is":                {several + "status: {sync: {status: Synced, revisions: [aaaa, '0000']}}\n", "", false},
		"several sources, synced":                    {several + "status: {operationState: {phase: Succeeded, syncResult: {revisions: ['1111', aaaa]}}}\n", "", true},
		"several sources, too few revisions":         {several + "status: {sync: {status: Synced, revision: aaaa, revisions: [aaaa]}}\n", "", false},
		"several sources, failed":                    {several + "status: {operationState: {phase: Failed, message: denied by a policy}}\n", "Application argocd/rome: denied by a policy", false},
		"hydrated": {"kind: Application\nmetadata: {name: vision, namespace: argocd}\nspec: {sourceHydrator: {drySource: {path: manifests/rome/vision}}}\n",
			"has a sourceHydrator", false},
		"manual": {manual + "status: {sync: {status: OutOfSync, revision: aaaa}}\n", "does not sync by itself", false},
	}
	for name, c := range cases {
		v := ArgoCD("rome", "vision", decode(t, c.application), func(hash string) bool { return hash == "aaaa" })
		if !strings.Contains(v.Trouble, c.trouble) || (c.trouble == "") != (v.Trouble == "") || v.Current != c.current {
			t.Errorf("%s: got %+v, want trouble %q, current %t", name, v, c.trouble, c.current)
		}
	}
}
