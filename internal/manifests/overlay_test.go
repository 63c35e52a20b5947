package manifests

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

func TestApplyOverlay(t *testing.T) {
	out, err := All(NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(v1alpha1.OffloadNamespace{Name: "vision", Quota: true}))}), fleet())
	if err != nil {
		t.Fatal(err)
	}
	rendered := map[string][]byte{}
	for name, text := range out.Files {
		rendered[strings.TrimPrefix(name, "manifests/rome/")] = text
	}
	patch := func(kind, text string) string {
		return "patches: [{target: {kind: " + kind + "}, patch: '" + text + "'}]\n"
	}
	cases := map[string]struct {
		reason        string
		kustomization string
		want, problem string
	}{
		"patch":            {"a label of the platform team", patch("ResourceSlice", `[{"op": "add", "path": "/metadata/labels/cost-center", "value": "42"}]`), "cost-center", ""},
		"component":        {"a Component is built onto the manifests", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" + patch("ResourceQuota", `[{"op": "add", "path": "/spec/hard/pods", "value": "7"}]`), `pods: "7"`, ""},
		"names the base":   {"so that a GitOps tool can build it", "resources: [../../manifests/rome]\ncommonAnnotations: {team: platform}\n", "team: platform", ""},
		"no match":         {"a patch for what is not there now is fine", patch("ConfigMap", `[{"op": "add", "path": "/data", "value": {}}]`), "ResourceSlice", ""},
		"slice spec":       {"what is sold is not an overlay's matter", patch("ResourceSlice", `[{"op": "replace", "path": "/spec/resources/cpu", "value": "64"}]`), "", "its specification must stay"},
		"node spec":        {"the taint must stay", patch("VirtualNode", `[{"op": "remove", "path": "/spec/taints"}]`), "", "its specification must stay"},
		"liqo label":       {"a slice without it is dead", patch("ResourceSlice", `[{"op": "remove", "path": "/metadata/labels/liqo.io~1remoteID"}]`), "", "must stay as they are"},
		"our annotation":   {"it is what a namespace may use", patch("Namespace", `[{"op": "replace", "path": "/metadata/annotations/fleetbroker.io~1intents", "value": "x"}]`), "", "must stay"},
		"pod security":     {"what pods are admitted is for who made the namespace", patch("Namespace", `[{"op": "add", "path": "/metadata/labels/pod-security.kubernetes.io~1enforce", "value": "privileged"}]`), "", "labels and annotations of pod-security.kubernetes.io may not be added"},
		"injection":        {"a namespace's plain labels choose what is put into its pods", patch("Namespace", `[{"op": "add", "path": "/metadata/labels/istio-injection", "value": "enabled"}]`), "", "may not have the label istio-injection"},
		"looser quota":     {"what is contracted bounds a namespace", patch("ResourceQuota", `[{"op": "replace", "path": "/spec/hard/requests.cpu", "value": "640"}]`), "", "may only be tightened"},
		"emptied quota":    {"so it does without an entry", patch("ResourceQuota", `[{"op": "remove", "path": "/spec/hard/requests.cpu"}]`), "", "may only be tightened"},
		"scoped quota":     {"or for some pods only", patch("ResourceQuota", `[{"op": "add", "path": "/spec/scopes", "value": ["Terminating"]}]`), "", "only the figures"},
		"policy":           {"the guards are no overlay's matter", patch("ValidatingAdmissionPolicy", `[{"op": "replace", "path": "/spec/failurePolicy", "value": "Ignore"}]`), "", "its specification must stay"},
		"binding":          {"nor what they do", patch("ValidatingAdmissionPolicyBinding", `[{"op": "replace", "path": "/spec/validationActions", "value": ["Audit"]}]`), "", "its specification must stay"},
		"offloading":       {"where pods may go was agreed", patch("NamespaceOffloading", `[{"op": "add", "path": "/spec/remoteNamespaceName", "value": "nlp-rome"}]`), "", "its specification must stay"},
		"finalizer":        {"nothing holds a namespace", patch("Namespace", `[{"op": "add", "path": "/metadata/finalizers", "value": ["example.org/stay"]}]`), "", "only labels and annotations"},
		"prune":            {"what ends must go, whichever tool applies", patch("ResourceSlice", `[{"op": "add", "path": "/metadata/annotations/argocd.argoproj.io~1sync-options", "value": "Prune=false"}]`), "", "of argocd.argoproj.io may not be added"},
		"prefix":           {"names must stay", "namePrefix: x-\n", "", "missing or renamed"},
		"namespace":        {"namespaces must stay", "namespace: elsewhere\n", "", "is ignored"},
		"addition":         {"only patches", "configMapGenerator: [{name: more, literals: [a=b]}]\n", "", "is added"},
		"does not build":   {"a mistake ends no manifest", "resources: [nothing.yaml]\n", "", "not a file or directory"},
		"not yaml":         {"nor does this", "patches: [", "", "overlays/rome is ignored"},
		"no kustomization": {"", "", "", "it has no kustomization.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			overlay := map[string][]byte{"kustomization.yaml": []byte(tc.kustomization)}
			if tc.kustomization == "" {
				overlay = map[string][]byte{"README.md": []byte("x")}
			}
			files, problem, err := ApplyOverlay("rome", rendered, overlay)
			if err != nil {
				t.Fatal(err)
			}
			if tc.problem != "" {
				if !strings.Contains(problem, tc.problem) || len(files) != len(rendered) {
					t.Fatalf("%s: got problem %q and %d files, want %q and the manifests as they were", tc.reason, problem, len(files), tc.problem)
				}
				return
			}
			if problem != "" || !strings.Contains(string(files["overlaid.yaml"]), tc.want) {
				t.Fatalf("%s: got problem %q, output %s", tc.reason, problem, files["overlaid.yaml"])
			}
		})
	}
}

// An overlay whose build takes the child's memory is no overlay to ignore: it is
// not read this time, and what stands is not replaced by what is without it.
func TestAnOverlayThatKillsItsBuildIsNotRead(t *testing.T) {
	rendered := map[string][]byte{
		"kustomization.yaml": []byte("resources: [a.yaml]\n"),
		"a.yaml":             []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: " + strings.Repeat("x", 1000) + "}\n"),
	}
	overlay := map[string][]byte{"kustomization.yaml": []byte(bounded.Bomb("ConfigMap", "data"))}
	files, problem, err := ApplyOverlay("rome", rendered, overlay)
	var unread *OverlayUnread
	var death *kustomize.Death
	if files != nil || problem != "" || !errors.As(err, &unread) || unread.Path != "overlays/rome" || !errors.As(err, &death) || !death.Convicts {
		t.Fatalf("%d files, problem %q, error %v", len(files), problem, err)
	}
	if !strings.HasPrefix(err.Error(), "overlays/rome is not read this time: ") || !strings.Contains(err.Error(), "took more than 256 MiB of memory; what was applied last stays") {
		t.Error(err)
	}
}
