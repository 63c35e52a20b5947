package install

import (
	"path"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Who may write a policy may change what anybody makes in the cluster, and no policy
// bounds that: no account of the bases may, in whatever way manifests are delivered.
func TestNobodyWritesPolicies(t *testing.T) {
	for name := range fleetOf().Clusters {
		files, err := fleetOf().Files(name)
		if err != nil {
			t.Fatal(err)
		}
		roles := 0
		for _, r := range build(t, files).Resources() {
			if r.GetKind() != "ClusterRole" && r.GetKind() != "Role" {
				continue
			}
			roles++
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(r.MustYaml()), &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				policies := slices.ContainsFunc(rule.Resources, func(of string) bool { return of == "*" || strings.Contains(of, "admissionpolic") })
				writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				if policies && writes {
					t.Errorf("%s: %s %s: %v of %v", name, role.Kind, role.Name, rule.Verbs, rule.Resources)
				}
			}
		}
		if roles == 0 {
			t.Errorf("%s has no role", name)
		}
	}
}

// Flux and Argo CD leave out the policies that the ledger has, of either version, and
// nothing else: their accounts may not write them.
func TestToolsLeavePoliciesOut(t *testing.T) {
	for tool, name := range map[string]string{"flux": "graz", "argocd": "kiel"} {
		files, err := fleetOf().Files(name)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Spec struct {
				Patches []any
				Source  struct{ Kustomize struct{ Patches []any } }
			}
		}
		if err := yaml.Unmarshal(files[path.Join(tool, "namespaces.yaml")], &object); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{v1alpha1.AdmissionV1, v1alpha1.AdmissionV1Beta1} {
			disk := map[string][]byte{"offloading.yaml": []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: vision}\n")}
			resources := []string{"offloading.yaml"}
			of := cluster(name, tool, "consumer")
			of.Spec.Admission = form
			for file, text := range manifests.Policies(name, of, id) {
				disk[path.Base(file)] = text
				resources = append(resources, path.Base(file))
			}
			text, err := yaml.Marshal(map[string]any{"resources": resources, "patches": append(object.Spec.Patches, object.Spec.Source.Kustomize.Patches...)})
			if err != nil {
				t.Fatal(err)
			}
			disk["kustomization.yaml"] = text
			left := build(t, disk).Resources()
			if len(resources) != 6 || len(left) != 1 || left[0].GetKind() != "Namespace" {
				t.Errorf("%s, %s: of %v is left\n%v", tool, form, resources, left)
			}
		}
	}
}
