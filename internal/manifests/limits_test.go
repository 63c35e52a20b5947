package manifests

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestAdmissible: what is rendered may reach a cluster, each of the golden
// files; what an attacker would lay beside it may not.
func TestAdmissible(t *testing.T) {
	goldens, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, golden := range goldens {
		archive, err := txtar.ParseFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			objects := map[objectID]map[string]any{}
			if !strings.HasSuffix(file.Name, ".yaml") || strings.HasSuffix(file.Name, kustomizationFile) {
				continue
			}
			if err := readObjects(file.Data, objects); err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				if n++; Admissible(o) != nil {
					t.Errorf("%s of %s: %v", file.Name, golden, Admissible(o))
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d objects: has not tested much", n)
	}
	for what, tc := range map[string]struct{ object, want string }{
		"a policy of one's own":     {"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: inject}}", "name"},
		"a system namespace":        {"{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}", "name"},
		"Liqo's own namespace":      {"{apiVersion: v1, kind: Namespace, metadata: {name: liqo}}", "name"},
		"a privileged namespace":    {"{apiVersion: v1, kind: Namespace, metadata: {name: vision, labels: {pod-security.kubernetes.io/enforce: privileged}}}", "label pod-security.kubernetes.io/enforce"},
		"a slice in kube-system":    {"{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, metadata: {name: a, namespace: kube-system}}", "namespace"},
		"another quota":             {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: theirs, namespace: vision}}", "name"},
		"another offloading":        {"{apiVersion: offloading.liqo.io/v1beta1, kind: NamespaceOffloading, metadata: {name: two, namespace: vision}}", "name"},
		"a Secret":                  {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: vision}}", "no kind that is delivered"},
		"a pod":                     {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: vision}}", "no kind that is delivered"},
		"a cluster role":            {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}}", "no kind that is delivered"},
		"another version":           {"{apiVersion: offloading.liqo.io/v1alpha1, kind: VirtualNode, metadata: {name: a, namespace: liqo-tenant-paris}}", "no kind that is delivered"},
		"what is pruned by nobody":  {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: fleetbroker, namespace: vision, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}}", "annotation"},
		"a binding of another name": {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: x-fleetbroker-intent-guard}}", "name"},
	} {
		objects := map[objectID]map[string]any{}
		if err := readObjects([]byte(tc.object), objects); err != nil || len(objects) != 1 {
			t.Fatal(what, err)
		}
		for _, o := range objects {
			if err := Admissible(o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want it refused for its %s", what, err, tc.want)
			}
		}
	}
}
