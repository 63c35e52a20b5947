package manifests

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
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
		"slice spec":       {"what is sold is not an overlay's matter", patch("ResourceSlice", `[{"op": "replace", "path": "/spec/resources/cpu", "value": "64"}]`), "", "its spec must stay"},
		"node spec":        {"the taint must stay", patch("VirtualNode", `[{"op": "remove", "path": "/spec/taints"}]`), "", "its spec must stay"},
		"liqo label":       {"a slice without it is dead", patch("ResourceSlice", `[{"op": "remove", "path": "/metadata/labels/liqo.io~1remoteID"}]`), "", "must stay as they are"},
		"our annotation":   {"it is what a namespace may use", patch("Namespace", `[{"op": "replace", "path": "/metadata/annotations/fleetbroker.io~1intents", "value": "x"}]`), "", "must stay"},
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
			files, problem := ApplyOverlay("rome", rendered, overlay)
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
